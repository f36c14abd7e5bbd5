#!/usr/bin/env python3
"""The bench model in PyTorch on the CPU: forward, backward and AdamW step on random tokens, as fast as it goes.

Runs with PyTorch 1.13 and later. Prints one JSON line: tokens_per_second, step_seconds (each timed step), gflops,
flops_per_token, parameters, and the settings. Settings are options rather than choices made here, so that the driver
can take the best of them: bench/train.py says which it uses.
"""

import argparse
import json
import math
import os
import sys
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--vocab", type=int, default=8192)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
    parser.add_argument("--seconds", type=float, default=12.0, help="timed steps go on for at least this long")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (2.0 and later)")
    parser.add_argument("--attention", choices=["sdpa", "masked"], default="sdpa",
                        help="masked: products, mask and softmax written out, the only way before 2.0")
    parser.add_argument("--adamw", choices=["fused", "foreach", "for"], default="fused")
    parser.add_argument("--profile", action="store_true", help="where a step's time goes, to stderr")
    return parser.parse_args()


def main():
    args = parse()
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    T, C, H = args.seq, args.width, args.heads
    d = C // H
    eps = 1.1920929e-07
    has_sdpa = hasattr(F, "scaled_dot_product_attention")
    if args.attention == "sdpa" and not has_sdpa:
        sys.exit("this PyTorch has no public scaled_dot_product_attention: use --attention masked")

    if hasattr(F, "rms_norm"):
        def norm(x):
            return F.rms_norm(x, (x.shape[-1],), eps=eps)
    else:
        def norm(x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)

    angle = torch.arange(T)[:, None] * (100000.0 ** (-2.0 * torch.arange(d // 2) / d))[None, :]
    cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
    hidden = torch.triu(torch.full((T, T), -math.inf), 1)

    def rotary(x):
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)

    def attend(q, k, v):
        if args.attention == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        B = q.shape[0]
        q, k, v = (x.reshape(B * H, T, d) for x in (q, k, v))
        scores = torch.baddbmm(hidden, q, k.transpose(1, 2), alpha=d**-0.5)
        return torch.bmm(torch.softmax(scores, -1), v).view(B, H, T, d)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
            # One product for q, k and v: the same weights side by side.
            self.qkv, self.proj = linear(C, 3 * C), linear(C, C)
            self.fc, self.mlp_proj = linear(C, 4 * C), linear(4 * C, C)

        def forward(self, x):
            B = x.shape[0]
            q, k, v = self.qkv(norm(x)).view(B, T, 3, H, d).unbind(2)
            q, k = norm(rotary(q)), norm(rotary(k))
            y = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
            x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
            return x + self.mlp_proj(torch.relu(self.fc(norm(x))).square())

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = torch.nn.Embedding(args.vocab, C)
            self.blocks = torch.nn.ModuleList([Block() for _ in range(args.depth)])
            self.head = torch.nn.Linear(C, args.vocab, bias=False)
            self.resid_lambdas = torch.nn.Parameter(torch.ones(args.depth))
            self.x0_lambdas = torch.nn.Parameter(torch.full((args.depth,), 0.05))

        def forward(self, tokens, targets):
            x = x0 = norm(self.wte(tokens))
            for i, block in enumerate(self.blocks):
                x = block(self.resid_lambdas[i] * x + self.x0_lambdas[i] * x0)
            logits = 15.0 * torch.tanh(self.head(norm(x)) / 15.0)
            return F.cross_entropy(logits.view(-1, args.vocab), targets.view(-1), ignore_index=-1)

    model = Model()
    parameters = sum(p.numel() for p in model.parameters())
    flops_per_token = 6 * (parameters - args.vocab * C - 2 * args.depth) + 12 * args.depth * C * T
    kind = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for": {"foreach": False}}[args.adamw]
    # "head" by name, not by identity: group the learning rates the recipe has, so that the step does the same work.
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if n.startswith("wte")], "lr": 0.3, "weight_decay": 0.001},
              {"params": [p for n, p in named if n.startswith("head")], "lr": 0.006, "weight_decay": 0.01},
              {"params": [p for n, p in named if n.endswith("lambdas")], "lr": 0.2, "weight_decay": 0.0},
              {"params": [p for n, p in named if n.startswith("blocks")], "lr": 0.003, "weight_decay": 0.1}]
    optimizer = torch.optim.AdamW(groups, betas=(0.8, 0.96), eps=1e-10, **kind)
    forward = torch.compile(model) if args.compile else model
    data = torch.randint(args.vocab, (4, args.batch, T + 1))

    def step(i):
        row = data[i % len(data)]
        loss = forward(row[:, :-1], row[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for i in range(args.warmup):
        step(i)
    if args.profile:
        with torch.profiler.profile() as profiler:
            step(0)
        print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=18, max_name_column_width=60),
              file=sys.stderr)
    seconds, start = [], time.perf_counter()
    while time.perf_counter() - start < args.seconds or len(seconds) < 3:
        before = time.perf_counter()
        loss = step(len(seconds))
        seconds.append(time.perf_counter() - before)
    total = time.perf_counter() - start
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    rate = len(seconds) * args.batch * T / total
    print(json.dumps({
        "tokens_per_second": round(rate, 1), "gflops": round(rate * flops_per_token / 1e9, 2),
        "step_seconds": [round(s, 4) for s in seconds], "flops_per_token": flops_per_token, "parameters": parameters,
        "loss": round(loss.item(), 4), "torch": torch.__version__, "threads": args.threads, "compile": args.compile,
        "attention": args.attention, "adamw": args.adamw,
        "environment": {k: v for k, v in sorted(os.environ.items())
                        if k.startswith(("OMP_", "KMP_", "OPENBLAS_", "NVPL_", "MKL_", "ONEDNN_", "LD_"))},
    }))


if __name__ == "__main__":
    main()
