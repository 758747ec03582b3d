"""A language model of 0.5 MB with random weights, served by llama.cpp in a process of its own.

What it says is noise by design; its server, its grammar and its limits are the real ones. Run with the path of a file
to write; it prints its address and ends when its standard input does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy
from llama_server import serve

CONTEXT_TOKENS = 16_384
_BYTES, _WIDTH, _LAYERS, _HEADS, _HIDDEN = 256, 64, 2, 4, 128
_CHAT = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}<|assistant|>"


def write_model(path: Path) -> None:
    """One token a byte, two layers, the same weights each time."""
    random = numpy.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_tokens(writer)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.08).astype(numpy.float32))

    add("token_embd.weight", _BYTES + 3, _WIDTH)
    add("output.weight", _BYTES + 3, _WIDTH)
    add("output_norm.weight", _WIDTH)
    for layer in (f"blk.{number}" for number in range(_LAYERS)):
        for name in ("attn_norm", "ffn_norm"):
            add(f"{layer}.{name}.weight", _WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{layer}.{name}.weight", _WIDTH, _WIDTH)
        for name in ("ffn_gate", "ffn_up"):
            add(f"{layer}.{name}.weight", _HIDDEN, _WIDTH)
        add(f"{layer}.ffn_down.weight", _WIDTH, _HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokens(writer: gguf.GGUFWriter) -> None:
    letters = [f"<0x{byte:02X}>".encode() for byte in range(_BYTES)]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * _BYTES]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *letters])
    writer.add_token_scores([0.0] * len(types))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(_CHAT)


def main() -> None:
    path = Path(sys.argv[1])
    write_model(path)
    serve(path, context_tokens=CONTEXT_TOKENS, threads=1)


if __name__ == "__main__":
    main()
