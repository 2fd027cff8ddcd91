"""Of verdicts that were said with one confidence, how many were right: generated cases (tests/battery), and the first verdict on each trial, as
docs/TRIALS.md has it. The table is in docs/DIAGNOSIS.md; tests/cases/battery.py --table writes it."""
import both
import trials

BEGIN, END = "<!-- calibration -->\n", "<!-- /calibration -->\n"
HEAD = "| confidence | generated: said | right | trials: said | right | of all right |\n|---|---|---|---|---|---|\n"
LEAST = 10  # said with one confidence or a higher one: of fewer nothing is asked


def real():
    """{confidence: [right, wrong]} of the rows in docs/TRIALS.md."""
    with open(both.PAGE, encoding="utf-8") as file:
        page = file.read()
    sure = {}
    for row in both.table_of(page, "<!-- trials -->\n", "<!-- /trials -->\n").splitlines()[2:]:
        name, _, said, confidence = [cell.strip() for cell in row.split("|")[1:5]]
        if said != "none":
            sure.setdefault(float(confidence), [0, 0])[said not in trials.header(name)["causes"]] += 1
    return sure


def table(generated, trialled):
    yield BEGIN + HEAD
    for confidence in sorted({*generated, *trialled}, reverse=True):
        (a, b), (c, d) = generated.get(confidence, (0, 0)), trialled.get(confidence, (0, 0))
        yield "| %.2f | %d | %d | %d | %d | %.0f %% |\n" % (confidence, a + b, a, c + d, c, 100 * (a + c) / (a + b + c + d))


def shown(text):
    """{confidence: [right, wrong]} of the table in that text."""
    sure = {}
    for row in text[text.index(BEGIN) + len(BEGIN + HEAD):text.index(END)].splitlines():
        confidence, said, right, trials_said, trials_right = row.split("|")[1:6]
        right = int(right) + int(trials_right)
        sure[float(confidence)] = [right, int(said) + int(trials_said) - right]
    return sure


def too_sure(sure):
    """What is wrong: of the verdicts with at least that confidence fewer are right than it says."""
    wrong = []
    for least in sorted(sure):
        rows = [(confidence, *sure[confidence]) for confidence in sure if confidence >= least]
        said, right = sum(r + w for _, r, w in rows), sum(r for _, r, _ in rows)
        if said >= LEAST and right < sum(c * (r + w) for c, r, w in rows):
            wrong.append("of %d said with %.2f or more %d are right" % (said, least, right))
    return wrong
