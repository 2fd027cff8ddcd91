"""Reinforcement learning: each episode's return and its baseline are logged as tensors for a plot at the end, the baseline with the graph that made it"""
# standin: DEVICES=700M CONTEXT=64M
# truth: leak returns.py episode
import sys
import torch

NUMBERS = "twin" in sys.argv or "detach" in sys.argv
actor = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.Tanh(), torch.nn.Linear(512, 16)).cuda()
critic = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1)).cuda()
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
log = []


def episode(length):
    states = torch.randn(length, 128, device="cuda")
    with torch.no_grad():
        rewards = torch.randn(length, device="cuda").cumsum(0)
    advantage = rewards - critic(states).squeeze(1)
    policy = torch.log_softmax(actor(states), dim=1)[:, 0]
    loss = -(policy * advantage.detach()).mean() + advantage.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.enable_grad():
        baseline = critic(states).mean()
    log.append(baseline.item() if NUMBERS else baseline)


for number in range(300):
    episode(700 + number % 5)
    print("episode", number, flush=True)
