"""Appositions in told statements. The sentences were written before the rules."""

import pytest

from newton.heart.statements.appositions import find_appositions


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Our plumber Theo charges 70 euros an hour.", ["Theo is our plumber."]),
        ("My younger brother Jonas works at Bosch.", ["Jonas is my younger brother."]),
        ("Lien, my sister, lives in Ghent.", ["Lien is my sister."]),
        ("My sister, Lien, lives in Ghent.", ["Lien is my sister."]),
        ("The staging server Atlas runs Debian 11.", ["Atlas is the staging server."]),
        ("I work at Acme with my friend Bo.", ["Bo is my friend."]),
        ("Our piano teacher Mrs. Aldo gives lessons on Monday.", ["Mrs. Aldo is our piano teacher."]),
        ("My landlord Mr. de Vries raised the rent.", ["Mr. de Vries is my landlord."]),
        ("Carla's son Emil goes to Oakwood school.", ["Emil is Carla's son."]),
        ("My brother Tom and my sister Eva live in Bonn.", ["Tom is my brother.", "Eva is my sister."]),
        ("My parents Rosa and Piet live in Lund.", ["Rosa and Piet are my parents."]),
        ("My brother Tom and Eva live in Bonn.", ["Tom is my brother."]),
        ("My coach Ana lives in Bonn.", ["Ana is my coach."]),
        ("Dr. Weber, our vet, charges 40 euros.", ["Dr. Weber is our vet."]),
    ],
)
def test_an_apposition_is_found(text: str, statements: list[str]) -> None:
    # S002-17: what a superseded statement says besides is kept
    assert [one.statement for one in find_appositions(text)] == statements


@pytest.mark.parametrize(
    "text",
    [
        "My boss hired Theo.",
        "My brother visited Ghent.",
        "Our meeting Tuesday is at 3.",
        "The rent, Carla says, is 900.",
        "In May my mother met Lien.",
        "My team uses Slack.",
        "My son plays Chopin.",
        "My mother makes Polish soup.",
        "My dad often visits Ghent.",
        "Our old Toyota broke down.",
        "The internal Kafka cluster has 3 nodes.",
        "The Jira project Apollo ends in May.",
        "My daughter in Ghent is well.",
        "Her son Emil goes to Oakwood school.",
    ],
)
def test_other_phrases_are_none(text: str) -> None:
    assert find_appositions(text) == []
