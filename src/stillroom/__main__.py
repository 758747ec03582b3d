from stillroom.cli import main

main()
