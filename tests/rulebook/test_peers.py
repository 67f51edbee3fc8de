"""rulebook answers the questions that DSPy's optimizers ask their models."""

import dspy

from skillc.models.rulebook import answer

FEEDBACK = "The score is {score}, where 0 is the worst and 1 the best.\nThe right answer is `{gold}`."


def asked(signature, **inputs):
    """A question as DSPy's chat adapter writes it, and rulebook's reply as it reads it."""
    adapter = dspy.ChatAdapter()
    messages = adapter.format(signature, [], inputs)
    return adapter.parse(signature, answer(messages, {"sample": [1, 7]}))


def row(text, answered, gold):
    score = int(answered == gold)
    return {
        "Inputs": {"text": text},
        "Generated Outputs": {"kind": answered},
        "Feedback": FEEDBACK.format(score=score, gold=gold),
    }


def test_gepas_question_is_answered_with_rules_for_the_wrong_answers():
    from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction

    signature = ProposeInstruction.prepend("additional_instructions", dspy.InputField(), str)
    examples = [row(f"an apple number {i}", "tool", "fruit") for i in range(3)]
    examples.append(row("a hammer", "tool", "tool"))
    said = asked(
        signature,
        additional_instructions='input text: text\noutput kind: "fruit" | "tool"',
        current_instruction='### Clear signs\n\n- If the text mentions "saw", answer tool.',
        examples_with_feedback=examples,
    )["new_instruction"]
    assert 'If the text mentions "saw", answer tool.' in said
    assert "answer fruit." in said
    assert "apple" in said


def test_gepas_question_without_right_answers_keeps_the_instruction():
    from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction

    blind = {"Inputs": {"text": "an apple"}, "Generated Outputs": {"kind": "tool"}, "Feedback": "The score is 0."}
    said = asked(ProposeInstruction, current_instruction="- Be brief.", examples_with_feedback=[blind])
    assert said["new_instruction"] == "- Be brief."


def test_miprov2s_questions_lead_from_data_to_rules_to_instructions():
    from dspy.propose.dataset_summary_generator import DatasetDescriptor, ObservationSummarizer
    from dspy.propose.grounded_proposer import generate_instruction_class

    data = [dspy.Example(text=f"an apple {i}", kind="fruit").with_inputs("text") for i in range(4)]
    data += [dspy.Example(text=f"a hammer {i}", kind="tool").with_inputs("text") for i in range(4)]
    observed = asked(DatasetDescriptor, examples=repr(data))["observations"]
    assert "answer fruit." in observed
    assert "answer tool." in observed
    summary = asked(ObservationSummarizer, observations=observed + observed)["summary"]
    assert len(summary.splitlines()) == len(set(summary.splitlines()))
    proposer = generate_instruction_class(program_aware=False, use_instruct_history=False)
    said = asked(
        proposer.signature, dataset_description=summary, task_demos="", basic_instruction="Sort texts.", tip=""
    )["proposed_instruction"]
    assert said.startswith("- Sort texts.")


def test_a_single_rewrite_keeps_rules_and_adds_what_the_failures_show():
    import json

    from skillc.document.skill import document_of
    from skillc.optimize.methods.one_shot import one_shot_messages
    from skillc.optimize.propose.prompting import TrajectoryView
    from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

    task = TaskPlan(
        inputs=(FieldPlan(name="text", type=TypePlan(kind="text"), column="text"),),
        outputs=(FieldPlan(name="kind", type=TypePlan(kind="labels", labels=("fruit", "tool")), column="kind"),),
    )
    skill = document_of("s", "a", [("rules", "trainable", '- If the text mentions "saw", answer tool.', 300)])
    views = [TrajectoryView(f"t{i}", {"text": f"an apple {i}"}, "tool", "fruit", "wrong", None, "0") for i in range(3)]
    messages = one_shot_messages(task=task, document=skill, trajectories=views, best="1")
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"].count('"saw"') == 1
    assert 'limit="300"' in messages[1]["content"]
    text = json.loads(answer(messages))["sections"]["rules"]
    assert 'If the text mentions "saw", answer tool.' in text
    assert "answer fruit." in text


def test_a_programs_own_question_is_none_of_them():
    signature = dspy.Signature(
        {"text": (str, dspy.InputField()), "kind": (str, dspy.OutputField())}, 'If the text mentions "a", answer b.'
    )
    assert asked(signature, text="a a a")["kind"] == "b"
