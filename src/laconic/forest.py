"""The rules of a batch of documents as one forest, in which models compute vectors bottom-up."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from laconic import _core
from laconic.grammar import Grammars
from laconic.show import how_many


class Forest(_core.Forest):
    """Rules of many documents, equal ones merged, sorted by level; sequences over its nodes.

    Nodes 0..alphabet_size-1 are the terminals. Node alphabet_size + i has two smaller nodes as its
    operands, children[i] (int32 [M, 2]). Level l is the nodes from level_offsets[l] to
    level_offsets[l + 1] (int64 [levels + 1]), counted without terminals; its operands are terminals
    or of levels before it, so that each level can be computed at once, from one slice into another.
    Document d is sequence[sequence_offsets[d]:sequence_offsets[d + 1]] (int32), in nodes.
    By node, `lengths` (int64 [alphabet_size + M]) says for how many terminals it stands, and
    `hashes` (uint64, as many) depends on those terminals alone. `shared` (int32, as many) is the
    rule of the rulebook that has the same operands, down to the terminals, or -1: the same in every
    batch. All arrays are read-only.
    """

    @cached_property
    def levels(self) -> list[slice]:
        """The slices of `children` that can be computed at once, in order."""
        bounds = self.level_offsets.tolist()
        return [slice(i, j) for i, j in pairwise(bounds)]

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.sequence_offsets) - 1

    def __repr__(self) -> str:
        return (
            f"<Forest: {how_many(len(self), 'document')}, "
            f"{how_many(len(self.children), 'node')} on {how_many(len(self.levels), 'level')}, "
            f"{how_many(len(self.sequence), 'symbol')}>"
        )


def plant(grammars: Grammars, merge: bool = True) -> Forest:
    """Return the forest of a batch. O(alphabet_size + rules + symbols).

    Rules that no sequence needs are left out, also those of a rulebook, of which each is one node;
    without `merge`, equal rules of documents stay apart.

    >>> from laconic import compress_many
    >>> forest = plant(compress_many(["abab", "xababab"]))
    >>> forest
    <Forest: 2 documents, 1 node on 1 level, 6 symbols>
    >>> forest.children.tolist(), forest.sequence.tolist()
    ([[97, 98]], [256, 256, 120, 256, 256, 256])
    """
    return Forest(grammars.core, merge)
