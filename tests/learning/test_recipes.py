from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from tiny_training import here, tiny, with_lab
from wordwing.commands import train
from wordwing.errors import WordwingError
from wordwing.execution.packing import unpack_pose
from wordwing.frames import Pose
from wordwing.learning.algorithm1 import ProcessA
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.recipes.cards import card
from wordwing.learning.recipes.config import RunConfig, check_settings, settings_of
from wordwing.learning.recipes.presets import RECIPES, ablated, changed, check_ablations, gpu, paper, quick
from wordwing.learning.runtime.logs import read_scalars
from wordwing.learning.runtime.messages import DirectLink
from wordwing.learning.runtime.worker import RunContext
from wordwing.learning.sureal import train_synchronously
from wordwing.learning.training_data import DataConfig, load_training_data
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.text import Tokens
from wordwing.policies.learned import LearnedPolicy

CHANGES = {
    "no-instruction": {"model.stage1.blank": "instruction"},
    "no-image": {"model.stage1.blank": "image"},
    "no-exploration": {"reinforcement.reward.exploration": 0.0, "reinforcement.reward.unobserved": 0.0},
    "no-discriminator": {"supervised.losses.wasserstein": 0.0},
    "sim-only": {"data.lab": "none"},
    "half-lab": {"data.lab": "half"},
    "tenth-lab": {"data.lab": "tenth"},
    "gold-path-end": {"reinforcement.gold_distance": 2.0},
    "from-standing": {"data.initial_executions": "standing"},
    "pvn": {"model.stage1.observability": False},
}
"""All that each ablation is about, as run.json has it."""


def flat(document, prefix=""):
    """The leaves of a JSON document, by dotted names."""
    if not isinstance(document, dict):
        return {prefix: document}
    found = {}
    for key, value in document.items():
        found |= flat(value, f"{prefix}.{key}" if prefix else key)
    return found


def difference(config: RunConfig, other: RunConfig):
    before, after = flat(config.to_json()), flat(other.to_json())
    assert before.keys() == after.keys()
    return {name: value for name, value in after.items() if value != before[name]}


@pytest.fixture(scope="module")
def cage(run, tmp_path_factory) -> Path:
    return with_lab(run.data.datasets[0].folder, tmp_path_factory.mktemp("lab") / "cage")


def process_a(cage, folder, *ablations) -> ProcessA:
    config = tiny(cage, "data.lab=all", "data.limit=none", ablate=ablations)
    if {"sim-only", "half-lab", "tenth-lab"} & set(ablations):
        config = ablated(tiny(cage, "data.limit=none"), ablations[0])
    data = load_training_data(config.data, torch.device("cpu"))
    return ProcessA(RunContext(folder, torch.device("cpu"), DirectLink()), config, data)


def test_the_command_and_the_library_know_the_same_names():
    assert get_args(train.Recipe) == tuple(RECIPES)
    assert get_args(train.Ablation) == tuple(CHANGES)


@pytest.mark.parametrize("ablation", CHANGES)
def test_an_ablation_changes_what_it_says_and_nothing_else(ablation):
    for recipe in (paper, gpu):
        assert difference(recipe(), ablated(recipe(), ablation)) == CHANGES[ablation]
    # Quick has no lab to begin with, but clones ORACLE's flights, of which there are none then.
    special = {"sim-only": {}, "from-standing": {"data.initial_executions": "standing", "schedule.cloning_updates": 0}}
    assert difference(quick(), ablated(quick(), ablation)) == special.get(ablation, CHANGES[ablation])


def test_ablations_can_be_combined():
    both = ablated(ablated(paper(), "no-image"), "half-lab")
    assert difference(paper(), both) == CHANGES["no-image"] | CHANGES["half-lab"]


@pytest.mark.parametrize(
    ("ablations", "sentence"),
    [
        (["no-image", "pvn", "no-instruction"], "no-instruction and no-image, which change the same setting"),
        (["tenth-lab", "sim-only", "half-lab"], "sim-only and half-lab and tenth-lab, which"),
    ],
)
def test_ablations_of_which_only_the_last_would_count_are_refused(ablations, sentence):
    with pytest.raises(WordwingError, match=sentence):
        check_ablations(ablations)


def test_all_other_ablations_can_be_had_together():
    for first in CHANGES:
        for second in CHANGES:
            both = ablated(ablated(paper(), first), second)
            if difference(paper(), both) == CHANGES[first] | CHANGES[second] == CHANGES[second] | CHANGES[first]:
                check_ablations([first, second])
            else:
                with pytest.raises(WordwingError):
                    check_ablations([first, second])


def test_an_unknown_ablation_is_refused_with_a_hint():
    with pytest.raises(WordwingError, match=r'no ablation is called "no-images"; did you mean "no-image"\?'):
        ablated(quick(), "no-images")


def test_paper_has_the_papers_amounts():
    config = paper()
    supervised = config.supervised
    contexts = (supervised.executions + 2 * supervised.cage_executions) * supervised.contexts.images
    assert config.schedule.updates * contexts == pytest.approx(16e6, rel=0.01)
    assert config.schedule.warm_up * contexts == pytest.approx(9.3e6, rel=0.01)
    assert config.schedule.iterations * config.reinforcement.flights == pytest.approx(400e3, rel=0.01)
    together = config.schedule.iterations * config.schedule.updates_per_iteration * contexts
    assert together == pytest.approx(6.7e6, rel=0.05), "one process does as much for both as two do"
    assert gpu().schedule.minutes == 25


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_make_sense(name):
    check_settings(RECIPES[name]())


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("schedule.minutes=10", "schedule.minutes", 10.0),
        ("schedule.minutes=none", "schedule.minutes", None),
        ("data.corpora=cage,house", "data.corpora", ("cage", "house")),
        ("data.segments=1,2", "data.segments", (1, 2)),
        ("data.limit=8", "data.limit", 8),
        ("data.lab=tenth", "data.lab", "tenth"),
        ("supervised.learning_rate=5e-4", "supervised.learning_rate", 5e-4),
        ("model.stage1.observability=False", "model.stage1.observability", False),
        ("reinforcement.ppo.gae_lambda=0.95", "reinforcement.ppo.gae_lambda", 0.95),
        ("data.corpora=a=b", "data.corpora", ("a=b",)),
        ("seed=7", "seed", 7),
        ("reinforcement.unlike=0.3", "reinforcement.dynamics_randomization", 0.3),
        ("reinforcement.ppo.gae=0.9", "reinforcement.ppo.gae_lambda", 0.9),
        ("data.heard=3", "data.min_word_count", 3),
        ("data.first=standing", "data.initial_executions", "standing"),
        ("supervised.contexts.forgotten=0.1", "supervised.contexts.word_dropout", 0.1),
    ],
)
def test_a_setting_is_changed_by_its_name(setting, name, value):
    found = dict(settings_of(changed(gpu(), [setting])))
    assert found[name] == value
    assert type(found[name]) is type(value)
    assert difference(gpu(), changed(gpu(), [setting])).keys() <= {name}


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("schedule.minuets=4", r'there is no setting "schedule\.minuets"; did you mean "minutes"\?'),
        ("minutes=4", r'there is no setting "minutes"; did you mean schedule\.minutes\?'),
        ("learning_rate=1", r"mean supervised\.learning_rate or reinforcement\.ppo\.learning_rate or "),
        ("hours=4", r'there is no setting "hours" \(data, model, '),
        ("schedule=4", r"schedule is a group of settings: schedule\.warm_up, "),
        ("schedule.minutes.x=4", r"schedule\.minutes is not a group of settings"),
        ("schedule.minutes", r"a setting is changed by NAME=VALUE"),
        ("seed=1.5", r"^--set seed: this is 1\.5; it must be a whole number of at least 0 "),
        ("data.dev=many", r'data\.dev: this is "many"; it must be a whole number'),
        ("data.dev=true", r"data\.dev: this is true; it must be a whole number"),
        ("supervised.learning_rate=fast", r'learning_rate: this is "fast"; it must be a number above 0 and at most 1$'),
        ("supervised.learning_rate=nan", r"must be a number above 0"),
        ("supervised.learning_rate=1e999", r"must be a number above 0"),
        ("model.stage1.observability=2", r"must be true or false"),
        ("data.lab=most", r'data\.lab is "most"; it must be all, half, tenth or none'),
        ("data.corpora=", r"data\.corpora: this is a list of 0; it must be one name or several"),
        ("data.segments=1,3", r"data\.segments: this has 3 in it; it must be 1, 2 or 1,2"),
        ("reinforcement.flights=0", r"flights: this is 0; it must be a whole number from 1 to 1,000,000$"),
        ("schedule.iterations=0", r"must be a whole number of at least 1 "),
        ("schedule.cloning_updates=-1", r"must be a whole number of at least 0 "),
        ("schedule.minutes=0", r"must be a number above 0 "),
        ("data.limit=0", r"must be a whole number of at least 1 "),
        ("seed=99999999999999999999", r"this is 9+; it must be a whole number of at least 0 \(and at most 10\^15\)"),
        ("supervised.executions=20000", r"from 1 to 10,000$"),
        ("reinforcement.ppo.updates=1000000000", r"from 1 to 100,000$"),
        ("reinforcement.ppo.clip=1e300", r"above 0 \(and at most 10\^15\)"),
        ("supervised.learning_rate=2", r"above 0 and at most 1$"),
        ("data.initial_executions=standing", r"show nothing to clone: schedule\.cloning_updates must be 0"),
        ("model.stage2.history=true", r"history cannot be cloned.*schedule\.cloning_updates must be 0"),
        ("supervised.weight_decay=-1", r"must be a number from 0 to 1$"),
        ("reinforcement.ppo.discount=1.1", r"must be a number from 0 to 1$"),
        ("supervised.contexts.foreign_motions=0.95", r"foreign_motions and look_arounds are more than 1 together"),
        ("supervised.contexts.shares=1,2,3", r"shares has 3 and data.corpora 1; there must be one share for each"),
        ("supervised.contexts.shares=1,0", r"contexts\.shares: this has 0 in it; it must be numbers above 0"),
        ("model.stage1.lingunet.levels=9", r"levels: this is 9; it must be a whole number from 2 to 6"),
        ("model.stage1.text.vectors=true", r"model\.stage1\.text\.vectors needs data\.tokenizer=2"),
        (
            "model.stage1.text.offset_dropout=1",
            r"offset_dropout: this is 1; it must be a finite number from 0 to",
        ),
        ("data.tokenizer=3", r"data\.tokenizer: this is 3; it must be 1 or 2"),
        ("model.stage2.first_deviation=0.01", r"first_deviation must be above model\.stage2\.min_deviation"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_in_a_sentence(setting, sentence):
    with pytest.raises(WordwingError, match=sentence):
        changed(quick(), [setting])


def outputs(network: PolicyNetwork, words, image):
    """All that a network believes after one look."""
    tokens = Tokens(torch.tensor([words]), torch.tensor([len(words)]))
    start = Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7)
    with torch.no_grad():
        _state, beliefs = network(network.begin(tokens, start), image, start, "sim")
    return beliefs


def alike(some, others) -> bool:
    differences = []
    each(lambda a, b: differences.append((a.double() - b.double()).abs().max()) or a, some, others)
    return float(max(differences)) < 1e-6


@pytest.mark.parametrize(("ablation", "text", "image"), [("no-instruction", 1, 0), ("no-image", 0, 1), ("pvn", 0, 0)])
def test_a_blanked_input_has_no_influence_and_the_other_one_has(ablation, text, image, run):
    whole = tiny(run.data.datasets[0].folder)
    config = ablated(whole, ablation).model
    torch.manual_seed(0)
    network = PolicyNetwork(config, 20).eval()
    with torch.no_grad():
        network.stage2.network.last.weight.mul_(100)
        for name, parameter in network.named_parameters():
            if name.endswith(".bias"):  # zero at first, and then nothing comes of a blank picture, whatever is said
                parameter.add_(torch.randn_like(parameter))
    pictures = torch.randint(256, (2, 1, 72, 128, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    first = outputs(network, [3, 4, 5], pictures[0])
    assert alike(first.control, outputs(network, [7, 8], pictures[0]).control) == bool(text)
    assert alike(first.visitation, outputs(network, [7, 8], pictures[0]).visitation) == bool(text)
    assert alike(first.visitation, outputs(network, [3, 4, 5], pictures[1]).visitation) == bool(image)


def test_pvn_has_no_place_for_what_was_not_observed(run):
    config = tiny(run.data.datasets[0].folder, ablate=("pvn",))
    learner = Reinforcement(PolicyNetwork(config.model, 500), run.examples, config.reinforcement)
    assert learner.network.stage1.lingunet.head is None
    rollouts = learner.collector.collect(torch.arange(4), torch.Generator().manual_seed(0))
    mask = rollouts.mask
    assert not rollouts.view.unobserved[mask].any()
    assert not rollouts.view.whole[mask][:, 2:].any(), "it is shown no masks"
    whole = replace(config, model=tiny(run.data.datasets[0].folder).model)
    others = Reinforcement(PolicyNetwork(whole.model, 500), run.examples, config.reinforcement)
    rollouts = others.collector.collect(torch.arange(4), torch.Generator().manual_seed(0))
    assert rollouts.view.unobserved[rollouts.mask].any()


def test_parts_of_the_lab_are_as_large_as_their_names_say(cage, tmp_path):
    sizes = {}
    for ablation in ("sim-only", "half-lab", "tenth-lab"):
        lab = process_a(cage, tmp_path, ablation).supervised.lab
        sizes[ablation] = len(lab) if lab is not None else None
    assert sizes == {"sim-only": None, "half-lab": 6, "tenth-lab": 2}
    assert len(process_a(cage, tmp_path).supervised.lab) == 10


def test_without_a_lab_or_a_discriminator_nothing_is_aligned(cage, tmp_path):
    whole, without = process_a(cage, tmp_path), process_a(cage, tmp_path, "no-discriminator")
    alone = process_a(cage, tmp_path, "sim-only")
    for process, aligned, lab in ((whole, True, True), (without, False, True), (alone, False, False)):
        before = [parameter.clone() for parameter in process.supervised.discriminator.parameters()]
        metrics = process.supervised.update()
        moved = any(
            not torch.equal(parameter, kept)
            for parameter, kept in zip(process.supervised.discriminator.parameters(), before, strict=True)
        )
        assert moved == aligned
        assert ("supervised/wasserstein" in metrics) == aligned
        assert ("supervised/lab_goal" in metrics) == lab


def test_from_standing_begins_with_drones_that_never_flew(cage, tmp_path):
    process = process_a(cage, tmp_path, "from-standing")
    executions, start = process.executions, process.data.examples.examples.start
    assert set(executions.lengths.tolist()) == {1}
    assert torch.allclose(unpack_pose(executions.poses[:, 0]).position, start.position, atol=1e-4)
    flown = process_a(cage, tmp_path).executions
    assert int(flown.lengths.min()) > 1


def test_a_lab_that_is_not_there_is_asked_for(run, tmp_path):
    bare = run.data.datasets[0].folder
    with pytest.raises(WordwingError, match=r"lab-train\.npz: the lab's demonstrations are not there; .* sim-only"):
        process_a(bare, tmp_path)
    with pytest.raises(WordwingError, match="the lab's demonstrations are of the cage"):
        process_a(run.data.datasets[1].folder, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("ablation", CHANGES)
def test_every_ablation_learns_and_leaves_a_policy_that_flies(ablation, cage, tmp_path):
    base = tiny(cage, "data.lab=all", "data.limit=20")
    config = ablated(base, ablation)
    b = train_synchronously(here(tmp_path), config)
    assert b.reinforcement.iterations == 2
    rows = [row for row in read_scalars(tmp_path / "log-a") if "supervised/loss" in row]
    assert len(rows) == 4
    assert all(row["supervised/skipped_updates"] == 0 and row["supervised/loss"] is not None for row in rows)
    [last] = [row for row in read_scalars(tmp_path / "log-b") if row["step"] == 2 and "losses/policy_loss" in row]
    if ablation in ("no-exploration", "pvn"):
        assert last["rewards/exploration"] == 0
        assert last["rewards/unobserved"] == 0
    policy = LearnedPolicy.from_pretrained(tmp_path / "policy")
    assert policy.network.config == config.model
    assert policy.network.stage1.same_vision == (config.data.lab == "none")
    assert all(marks.emd.size == 2 for marks in b.evaluator.fly(policy).values())


@pytest.mark.parametrize("first", ["data", "/home/me", "/home/me/rooms"])
def test_a_card_names_datasets_without_their_folders_and_leaves_the_rest_of_the_command(run, first):
    folders = (first, "field", "/home/me/rooms/house")
    command = "wordwing train sureal --set data.corpora={} data.limit=5 schedule.minutes=1 --seed 0"
    config = RunConfig(data=DataConfig(corpora=folders))
    given = command.format(",".join(folders))
    made = card(given, config, run.data, torch.device("cpu"), {}, minutes=1, updates=0, flights=0, decisions=0)
    assert f"- command: `{command.format('cage,field,house')}`" in made
