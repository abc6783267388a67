"""A language model in a GGUF file, run in this process by llama.cpp (`pip install 'ricordo[local]'`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ricordo.errors import InvalidError, UnavailableError
from ricordo.ports import Completion, Piece, Turn


class LocalModel:
    """A LanguageModel and a ChatModel. The file is loaded at the first prompt; prompts run one at a time."""

    def __init__(self, path: str, *, context_tokens: int) -> None:
        self.name = f"file:{Path(path).name}"
        self.context_tokens = context_tokens
        self._path = Path(path).expanduser()
        # Prompts wait here and not in asyncio's own threads, which all work shares.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ricordo-language-model")
        self._loaded: Any = None
        if not self._path.is_file():
            raise InvalidError(f"model: the file {path} does not exist", hint="give the path of a .gguf file")

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """Return one answer. The schema restricts the output as a grammar.

        Raises:
            UnavailableError: llama.cpp is not installed, or cannot run the file.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._complete, turns, schema, max_tokens)

    async def stream(self, turns: Sequence[Turn], *, max_tokens: int) -> AsyncIterator[Piece]:
        """Stream an answer. Raises as `complete` does. Closing the iterator stops generation after the next piece."""
        loop, pieces, is_over = asyncio.get_running_loop(), asyncio.Queue[Piece | UnavailableError](), threading.Event()

        def produce() -> None:
            for piece in self._pieces(turns, max_tokens):
                if is_over.is_set():
                    return
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        producer = loop.run_in_executor(self._thread, produce)
        try:
            while True:
                piece = await pieces.get()
                if isinstance(piece, UnavailableError):
                    raise piece
                yield piece
                if piece.ended is not None:
                    break
        finally:
            is_over.set()
            await producer

    def _pieces(self, turns: Sequence[Turn], max_tokens: int) -> Iterator[Piece | UnavailableError]:
        """Yield the pieces. The last item has the end of the answer, or is the error."""
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        try:
            why = ""
            for part in self._llama().create_chat_completion(messages=messages, max_tokens=max_tokens, stream=True):
                choice = part["choices"][0]
                why = choice.get("finish_reason") or why
                if text := choice.get("delta", {}).get("content"):
                    yield Piece(text=text)
            yield Piece(ended="cut" if why == "length" else "done")
        except UnavailableError as error:
            yield error
        except (ValueError, RuntimeError, AssertionError, LookupError) as error:
            yield UnavailableError(f"{self.name} gave no answer: {type(error).__name__}")

    def _complete(self, turns: Sequence[Turn], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        form = {"type": "json_object", "schema": schema}
        model = self._llama()
        try:
            answer = model.create_chat_completion(
                messages=messages, response_format=form, max_tokens=max_tokens, temperature=0.0
            )
        except (ValueError, RuntimeError, AssertionError) as error:
            raise UnavailableError(f"{self.name} gave no answer: {type(error).__name__}") from error
        choice, used = answer["choices"][0], answer["usage"]
        return Completion(
            text=choice["message"]["content"] or "",
            tokens_in=used["prompt_tokens"],
            tokens_out=used["completion_tokens"],
            ending="cut" if choice["finish_reason"] == "length" else "done",
        )

    def _llama(self) -> Any:
        if self._loaded is None:
            try:
                from llama_cpp import Llama
            except ImportError as error:
                raise UnavailableError(
                    "models in files need a package that is not installed", hint='pip install "ricordo[local]"'
                ) from error
            try:
                self._loaded = Llama(model_path=str(self._path), n_ctx=self.context_tokens, verbose=False)
            except (ValueError, OSError, RuntimeError) as error:
                raise UnavailableError(f"{self.name} cannot be loaded: {type(error).__name__}") from error
        return self._loaded
