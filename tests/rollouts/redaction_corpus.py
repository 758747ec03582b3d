"""Secrets and what only looks like one. All made up, and put together here so that no scanner takes them for real."""

from __future__ import annotations

import base64
from typing import NamedTuple


class Secret(NamedTuple):
    kind: str
    text: str  #: `{}` is where the secret stands
    secret: str


def _mix(length: int) -> str:
    """Letters and digits without a meaning."""
    return ("aZ4kQ9xT2mW7pL1vR8nB3cY6" * 12)[:length]


def _hex(length: int) -> str:
    return ("9f3a7c1e5b8d2046" * 12)[:length]


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


JWT = ".".join(("eyJ" + _mix(20), "eyJ" + _mix(60), _mix(43)))
PEM_BODY = "\n".join(["MIIE" + _mix(60), _mix(64), _mix(64), _mix(20) + "=="])


def pem(label: str, body: str = PEM_BODY) -> str:
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


TOKENS: list[Secret] = [
    Secret(kind, "{}", secret)
    for kind, secret in [
        ("openai_key", "sk-" + _mix(48)),
        ("openai_key", "sk-" + "abcdefghij" * 2),
        ("openai_key", "sk-proj-" + _mix(40) + "-" + _mix(30) + "_" + _mix(10)),
        ("openai_key", "sk-svcacct-" + _mix(60)),
        ("openai_key", "sk-admin-" + _mix(60)),
        ("anthropic_key", "sk-ant-" + "api03-" + _mix(50) + "-" + _mix(30) + "AA"),
        ("anthropic_key", "sk-ant-" + "oat01-" + _mix(80)),
        ("openrouter_key", "sk-or-v1-" + _hex(64)),
        ("aws_access_key_id", "AK" + "IA" + "Z7Q2M4X9T1P5K8B3"),
        ("aws_access_key_id", "AS" + "IA" + "Z7Q2M4X9T1P5K8B3"),
        ("google_api_key", "AI" + "za" + _mix(35)),
        ("google_oauth_token", "ya" + "29." + _mix(60)),
        ("google_oauth_secret", "GOC" + "SPX-" + _mix(28)),
        ("github_token", "ghp_" + "a1" * 18),
        *[("github_token", f"gh{letter}_" + _mix(36)) for letter in "pousr"],
        ("github_token", "github_" + "pat_" + _mix(22) + "_" + _mix(59)),
        ("gitlab_token", "glp" + "at-" + _mix(20)),
        ("gitlab_token", "gldt-" + _mix(20)),
        ("gitlab_token", "glrt-" + _mix(20)),
        ("slack_token", "xo" + "xb-123456789012-1234567890123-" + _mix(24)),
        *[("slack_token", f"xo{'x'}{letter}-2" + _mix(30)) for letter in "aeoprs"],
        ("slack_token", "xa" + "pp-1-A0123456789-1234567890123-" + _hex(64)),
        ("stripe_key", "sk_" + "live_" + _mix(24)),
        ("stripe_key", "sk_" + "test_" + _mix(24)),
        ("stripe_key", "rk_" + "live_" + _mix(24)),
        ("stripe_webhook_secret", "whs" + "ec_" + _mix(32)),
        ("npm_token", "npm_" + _mix(36)),
        ("pypi_token", "pypi-" + "AgEIcHlwaS5vcmc" + _mix(80)),
        ("huggingface_token", "hf_" + _mix(34)),
        ("telegram_token", "123456789:" + "AA" + _mix(33)),
        ("discord_token", _b64("123456789012345678").rstrip("=") + ".Gx4kQ9." + _mix(38)),
        ("sendgrid_key", "SG" + "." + _mix(22) + "." + _mix(43)),
        ("twilio_key", "S" + "K" + _hex(32)),
        ("azure_client_secret", "abc" + "8Q~" + _mix(34)),
        ("jwt", JWT),
        ("digitalocean_token", "dop_" + "v1_" + _hex(64)),
        ("groq_key", "gsk_" + _mix(52)),
        ("age_key", "AGE-SECRET-" + "KEY-1" + _mix(58).upper()),
        ("vault_token", "hvs" + "." + _mix(90)),
        ("databricks_token", "dapi" + _hex(32)),
        ("mailgun_key", "key-" + _hex(32)),
    ]
]

SURROUNDED: list[Secret] = [
    Secret(kind, text, secret)
    for kind, text, secret in [
        # --- URLs
        ("url_password", "postgres://app:{}@db.internal:5432/shop", "S3cr3t!pw"),
        ("url_password", "DATABASE_URL=postgresql+asyncpg://app:{}@db/shop?sslmode=require", "hunter2"),
        ("url_password", "mysql://root:{}@127.0.0.1/x", "p@ss"),
        ("url_password", "redis://:{}@cache:6379/0", "R3disPass"),
        ("url_password", "mongodb+srv://u:{}@cluster0.mongodb.net/db", "aB3%40x"),
        ("url_password", "git clone https://oauth2:{}@git.corp/x.git", "deploykey9"),
        ("url_password", '"url":"https:\\/\\/u:{}@host\\/x"', "abc999"),
        ("slack_webhook", "https://hooks.slack.com/services/{}", "T0123ABCD/B0123ABCD/" + _mix(24)),
        ("discord_webhook", "https://discord.com/api/webhooks/123456789012345678/{}", _mix(68)),
        ("url_signature", "https://x.blob.core.windows.net/c?sv=2022-11-02&se=2026-01-01&sig={}", _mix(43) + "%3D"),
        (
            "azure_account_key",
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=y",
            _mix(86) + "==",
        ),
        # --- headers
        ("bearer_token", "curl -H 'Authorization: Bearer {}' https://x", _mix(30)),
        ("bearer_token", "authorization: bearer {}", "tok12345"),
        ("basic_credentials", "Authorization: Basic {}", _b64("user:pass99")),
        ("authorization", "Authorization: Token {}", _hex(40)),
        ("authorization", '"Authorization": "token {}"', _hex(40)),
        ("cookie", "Cookie: sid={}; theme=dark", _mix(20)),
        ("cookie", "Set-Cookie: session={}; Path=/; HttpOnly", _mix(20)),
        ("cookie", '"Cookie": "connect.sid={}"', "s%3A" + _mix(20)),
        ("cookie", "curl --cookie 'session={}' https://x", _mix(20)),
        ("api_key", "X-Api-Key: {}", _mix(32)),
        ("token", "PRIVATE-TOKEN: {}", _mix(24)),
        # --- assignments: shell
        ("token", "export MY_TOKEN={}", _mix(24)),
        ("token", 'MY_TOKEN="{}" make', _mix(24)),
        ("secret", "APP_SECRET='{}'", _mix(24)),
        ("password", "DB_PASSWORD={} ./run", "correcthorse"),
        ("password", "PGPASSWORD={} psql", "hunter22"),
        ("password", "MYSQL_PASS={}", "tr0ub4dor"),
        ("api_key", "API_KEY={}", _hex(32)),
        ("api_key", "OPENWEATHER_API_KEY={}", _hex(32)),
        ("aws_secret_key", "AWS_SECRET_ACCESS_KEY={}", _mix(20) + "/" + _mix(19)),
        ("aws_secret_key", "aws_secret_access_key = {}", _mix(20) + "/" + _mix(19)),
        ("key", "STRIPE_KEY={}", _mix(24)),
        ("password", "mysqldump --password={} db", "S3cr3tpw"),
        ("password", "tool --password {} x", "S3cr3tpw"),
        ("token", "vault login --token {}", _mix(24)),
        ("api_key", 'x --api-key "{}"', _mix(24)),
        ("password", "curl -u admin:{} https://x", "s3cretpw"),
        ("password", "machine api.x login me password {}", "gr8secret"),
        ("password", "sqlcmd 'Server=x;Uid=sa;Pwd={};'", "Str0ngPass"),
        ("password", "jdbc:mysql://h/db?user=a&password={}&x=1", "sommersonne"),
        # --- YAML, TOML, properties
        ("password", "db:\n  password: {}\n  port: 1", "hunter2hunter2"),
        ("password", "password: '{}'", "correct!horse"),
        ("token", 'token = "{}"\nnext = 1', _mix(24)),
        ("secret", 'client_secret = "{}"', _mix(24)),
        ("api_key", "apikey: {}", _mix(24)),
        ("password", "spring.datasource.password={}\nx=1", "sommersonne"),
        # --- JSON
        ("api_key", '{{"apiKey": "{}", "x": 1}}', _mix(24)),
        ("api_key", '{{"api_key":"{}","x":1}}', _mix(24)),
        ("token", '{{"accessToken":"{}"}}', _mix(24)),
        ("password", '{{"password":"{}"}}', "a b3 c9x"),
        ("password", '{{"password":"{}"}}', 'with\\"quote12'),
        ("secret", r'"{{\"client_secret\":\"{}\",\"x\":1}}"', _mix(24)),
        ("password", r'"{{\"password\":\"{}\",\"x\":1}}"', r"ab\\\"cd12"),
        ("api_key", r'"{{\\\"apiKey\\\":\\\"{}\\\",\\\"x\\\":1}}"', _mix(24)),
        ("aws_secret_key", '"SecretAccessKey": "{}"', _mix(40)),
        # --- code and others
        ("password", "connect(user='x', password='{}')", "pa55word9"),
        ("password", 'password: str = "{}"', "pa55word9"),
        ("api_key", 'const apiKey = "{}";', _mix(24)),
        ("token", 'config["token"] = "{}"', _mix(24)),
        ("password", "{{'password': '{}', 'x': 1}}", "pa55word9"),
        ("password", "<password>{}</password>", "pa55word9"),
        ("password", "my password is {}", "Tr0ub4dor&3"),
        ("password", "密码：{}", "Tr0ub4dor3"),
        ("password", "пароль: {}", "Tr0ub4dor3"),
        ("github_token", "GITHUB_TOKEN={}", "ghp_" + _mix(36)),
        ("github_token", '"token": "{}"', "ghp_" + _mix(36)),
        # --- where a word begins in escaped text
        ("github_token", r'"a\n{}\nb"', "ghp_" + _mix(36)),
        ("github_token", r'"a\\n{}\\nb"', "ghp_" + _mix(36)),
        ("openai_key", "令牌{}。", "sk-" + _mix(48)),
        ("github_token", "x%20{}", "ghp_" + _mix(36)),
        ("github_token", "\x1b[32m{}\x1b[0m", "ghp_" + _mix(36)),
        ("twilio_auth_token", "Client('AC" + _hex(32) + "', '{}')", _hex(33)[1:]),
        # --- keys
        *[
            ("private_key", "before\n{}\nafter", pem(label))
            for label in (
                "PRIVATE KEY",
                "RSA PRIVATE KEY",
                "EC PRIVATE KEY",
                "OPENSSH PRIVATE KEY",
                "ENCRYPTED PRIVATE KEY",
            )
        ],
        ("private_key", 'x = "{}" + y', pem("PRIVATE KEY").replace("\n", "\\n")),
        ("private_key", r"{{\"key\": \"{}\", \"x\": 1}}", pem("PRIVATE KEY").replace("\n", r"\\n")),
        (
            "private_key",
            "a{} b",
            "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n" + PEM_BODY,
        ),
        ("private_key", "words before {}-----END " + "PRIVATE KEY-----", PEM_BODY + "\n"),
        ("private_key", r'"a\n{}-----END ' + 'PRIVATE KEY-----"', PEM_BODY.replace("\n", "\\n") + "\\n"),
        ("private_key", "{}\nand then he left", "-----BEGIN " + "PRIVATE KEY-----\n" + _mix(64) + "\n" + _mix(64)),
    ]
]

#: The Bearer rule of Codex.
BEARER_POSITIVE = [
    "Bearer abcdefghijklmnop",
    "bearer abcdefghijklmnop",
    "BEARER abcdefghijklmnop",
    "bEaReR abcdefghijklmnop",
    "Bearer\tabcdefghijklmnop",
    "Bearer    abcdefghijklmnop",
    "Bearer abc.def_ghi~jkl+mno/pqr-stu==",
]
BEARER_NEGATIVE = [
    "the bearer of bad news",
    "Bearer abcdefghijklmno",
    "forbearer abcdefghijklmnop",
    "Bearerabcdefghijklmnop",
    "Bearer\nabcdefghijklmnop",
    "Bearer\u00a0abcdefghijklmnop",
    "Bearer abcdefghijklmno\u212a",
]

NEGATIVE: list[str] = [
    # hashes, ids
    "commit " + _hex(40),
    "sha256:" + _hex(64),
    '"integrity": "sha512-' + _mix(86) + '=="',
    "id 550e8400-e29b-41d4-a716-446655440000",
    '"call_id":"call_' + _mix(24) + '"',
    '"prompt_cache_key":"01a2273c-0036-7133-90f0-7698c74b216a"',
    "ownership_token = '01a2273c-0036-7133-90f0-7698c74b216a'",
    "cache-key: node-" + _hex(64),
    "/nix/store/" + _mix(32).lower() + "-hello-2.12",
    "data:image/png;base64," + _mix(200),
    "account AC" + _hex(32),
    # examples of vendors
    "AKIAIOSFODNN7" + "EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=sk-" + "x" * 40,
    "export OPENAI_API_KEY=<your-token>",
    "export OPENAI_API_KEY=your-api-key-here",
    "GITHUB_TOKEN=${TOKEN}",
    "GITHUB_TOKEN=$TOKEN",
    'GITHUB_TOKEN="$(gh auth token)"',
    "token: ${{ secrets.GITHUB_TOKEN }}",
    'password: "{{ vault_password }}"',
    "password=xxxxxxxx",
    "password=********",
    "password: changeme",
    "ghp_" + "x" * 36,
    "https://user:password@example.com",
    "https://user:<password>@example.com",
    "postgres://user:${DB_PASSWORD}@host/db",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <your-access-token>",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "Authorization: Bearer ${ACCESS_TOKEN}",
    # code
    'token = os.environ["TOKEN"]',
    "token = os.environ.get('API_TOKEN')",
    "apiKey: process.env.OPENAI_API_KEY,",
    "const secret = process.env.JWT_SECRET!",
    "password: str",
    "password: Optional[str] = None",
    "def login(user: str, password: str) -> None:",
    "token = get_token()",
    "token = self.client.get_token(scope)",
    "token: TokenType.Access",
    "secret = settings.secret_key",
    "password = request.form['password']",
    "api_key=api_key, model=model",
    "connect(password=user_password)",
    "token=token_value",
    "token = tokens[index]",
    "if token == expected_token:",
    "password: z.string().min(8)",
    "access_token: string;",
    "private_key = load_private_key(path)",
    "token: Token = next(tokens)",
    "let token = parser.next_token2();",
    '"max_tokens": 4096',
    "tokens: 1234",
    "tokens: 1234567890",
    "token_count = 12345678",
    '{"password": 12345678}',
    '{"token": null, "password": true}',
    "input_token: 1234567",
    "password = hashlib.sha256(x)",
    "api_key_env = 'OPENAI_API_KEY'",
    'api_key = "OPENAI_API_KEY"',
    'credentials: "include"',
    '"token": "access_token"',
    '<input type="password" name="password">',
    '"password": "Forgot your password?"',
    '"password": "Passwort"',
    "secret: db-credentials",
    "secretName: my-tls-secret",
    "imagePullSecret: registry-login-secret",
    "token: /var/run/secrets/token",
    "PWD=/home/dev/project-1a2b",
    "OLDPWD=/home/dev/abc123",
    "password: required, at least 8 characters",
    "Password: must have 8-20 characters",
    "the token: authentication happens later",
    "task-" + _hex(32),
    "disk-usage-report-2026-01-01-abcdef",
    "risk-abcdefghijklmnopqrstuvwx",
    "basic authentication",
    "Basic authentication-middleware",
    "bearer token-based-authentication",
    "cookie: we use cookies = fine",
    "Set-Cookie: a=b; Path=/; HttpOnly",
    "docker run -u 1000:1000 image",
    "http://localhost:3000/path@x",
    "git@github.com:owner/repository.git",
    "see https://host:8080/a:b@c",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + _mix(64) + "\n-----END CERTIFICATE-----",
    'eyJ is how base64 of {" begins',
    "sort_key: createdAt2026DescOrder1",
    '"key": "user-preferences-2"',
    "SecretStr('**********')",
    "hf_hub_download(repo_id, filename)",
    "npm_config_registry=https://registry.npmjs.org",
    "sk-learn and sk-fold-out are words",
    "xoxb-your-token",
    '"AWS::IAM::AccessKey": "72c2d9dd90025459"',
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-a1b2c3",
    '"encryptionKey": "arn:aws:kms:us-west-2:123456789012:alias/aws/s3"',
    "private_key: ed25519.Ed25519PrivateKey",
    "private_key: PKCS7PrivateKeyTypes,",
    'SIGNING_HEADERS = ("authorization", "x-amz-content-sha256")',
    "Set-Cookie: CUSTOMER=WILE_E_COYOTE; PART_NUMBER=RIDING_ROCKET_0023",
    '"price_key": "cache_audio_write_1h_mtok"',
    '"result_key": "Ipv6CidrAssociations"',
    "SOCKS5_NO_ACCEPTABLE_AUTH = SOCKS5_NO_ACCEPTABLE_AUTH",
    "allocated by the base-passwd maintainer",
    'elif token == "#bygroup":',
    'print(f"password={password!r}")',
    'publicKeyToken="1fc8b3b9a1e18e3b"',
    "https://[&lt;user&gt;[:&lt;password&gt;]@host",
    "if text.startswith('-----BEGIN RSA " + "PRIVATE KEY-----'):",
    '{"-----BEGIN ' + 'PRIVATE KEY-----": ' + "1234567890" * 5 + "}",
    "[REDACTED_SECRET:github_token]: token123456",
    "password=[REDACTED_SECRET]",
]
