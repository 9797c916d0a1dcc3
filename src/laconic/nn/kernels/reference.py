"""What the kernels compute, written plainly: one step after the other, in the type of the input."""

from __future__ import annotations

import torch
from torch import Tensor


def read(
    x: Tensor,
    lengths: Tensor,
    from_input: Tensor,
    bias: Tensor,
    from_state: Tensor,
    gru: bool = False,
) -> Tensor:
    """Return the states of all units after each symbol, float [T, B, ways * W]; 0 at padding.

    See laconic.nn.kernels.recurrent for the arguments.
    """
    steps, documents, _ = x.shape
    ways, width = from_state.shape[:2]
    given = torch.einsum("tbi,wuqi->wtbuq", x, from_input) + bias[:, None, None]
    time = torch.arange(steps, device=x.device)[:, None]
    there = time < lengths
    turned = torch.where(there, lengths - 1 - time, time)
    read = []
    for way in range(ways):
        order = (turned if way else time.expand_as(turned))[:, :, None, None]
        ahead = given[way].gather(0, order.expand_as(given[way]))
        output = state = x.new_zeros(documents, width)
        outputs = []
        for step in range(steps):
            slots = ahead[step] + torch.einsum("bi,uqi->buq", output, from_state[way])
            if gru:
                # What the state adds to what is new has its own slot.
                reset, update = slots[..., :2].sigmoid().unbind(-1)
                new = (slots[..., 2] + reset * slots[..., 3]).tanh()
                output = new + update * (output - new)
            else:
                enter, keep, _, leave = slots.sigmoid().unbind(-1)
                state = keep * state + enter * slots[..., 2].tanh()
                output = leave * state.tanh()
            outputs.append(output * there[step, :, None])
        made = torch.stack(outputs) if outputs else x.new_zeros(0, documents, width)
        read.append(made.gather(0, order[..., 0].expand_as(made)))
    return torch.cat(read, -1)
