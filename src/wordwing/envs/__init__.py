"""Instruction following as Gymnasium environments: `wordwing/Follow-v0`, one drone or many at once.

Importing this package registers it, by itself or as Gymnasium does it:

    gymnasium.make("wordwing.envs:wordwing/Follow-v0")
    gymnasium.make_vec("wordwing.envs:wordwing/Follow-v0", num_envs=8, corpus="cage")

Without a corpus they fly dev-mini, 64 instructions that come with wordwing.
"""

import gymnasium as gym

from wordwing.envs.follow import FollowEnv, FollowVectorEnv

__all__ = ["ENV_ID", "FollowEnv", "FollowVectorEnv", "register_envs"]

ENV_ID = "wordwing/Follow-v0"


def register_envs() -> None:
    """Make `wordwing/Follow-v0` known to Gymnasium, once."""
    if ENV_ID not in gym.registry:
        gym.register(
            ENV_ID,
            entry_point="wordwing.envs:FollowEnv",
            vector_entry_point="wordwing.envs:FollowVectorEnv",
        )


register_envs()
