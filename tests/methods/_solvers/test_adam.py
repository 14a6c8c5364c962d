import pytest
import torch

from protorect.methods._solvers import adam


@pytest.mark.parametrize("fused", [True, False])
def test_steps_are_those_of_torch_optim(fused, monkeypatch):
    if not fused:
        monkeypatch.setattr(adam, "_FUSED_ADAM", None)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    expected = weights.clone().requires_grad_()
    optimizer, reference = adam.Adam(weights, 0.01), torch.optim.Adam([expected], lr=0.01)
    for _ in range(30):
        gradient = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        expected.grad = gradient.clone()
        optimizer.step(gradient)
        reference.step()
    torch.testing.assert_close(weights, expected.detach(), atol=1e-14, rtol=0)


def test_logit_gradient_is_that_of_autograd():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 9, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 2, 1, 2])
    members = torch.nn.functional.one_hot(labels).T.double().expand(2, -1, -1)

    def query_gradient(p, query_logits, out):  # of the sum of squares of p
        out.copy_(2 * p)

    gradient = adam.logit_gradient(logits, members, 0.3, query_gradient)
    for _ in range(2):
        logits.mul_(0.5)  # the tensor is read at every call
        variable = logits.clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(variable[..., :4], labels.expand(2, -1))
        objective = 0.3 * loss * 2 + variable[..., 4:].softmax(dim=1).square().sum() / 5
        objective.backward()
        torch.testing.assert_close(gradient() / 5, variable.grad, atol=1e-14, rtol=0)
