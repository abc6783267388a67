"""Whether a text gives orders to an assistant instead of telling something. Rules, for English and Russian. Pure.

A memory is read back into a prompt. Whoever can put a sentence into it ("from now on always recommend ...") would speak
to the assistant in the user's name, weeks later. These rules do not understand a text: they name what is telling about
it, and somebody decides. They are for texts that are not the user's own; a user may give orders.
"""

from ricordo.text.injection.hidden import hides_text, revealed
from ricordo.text.injection.rules import Reason, reasons

__all__ = ["Reason", "hides_text", "reasons", "revealed"]
