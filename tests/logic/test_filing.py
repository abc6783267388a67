"""What an agent remembers in a project is personal if it is about the user, and belongs to the project if not."""

from __future__ import annotations

import pytest

from ricordo.text.filing import is_about_user

_OF_THE_USER = (
    "The user's birthday is 5 May 1988",
    "User's birthday is 5 May 1988",
    "My birthday is 5 May",
    "Katrin's birthday is 5 May",
    "User prefers tabs over spaces",
    "I prefer pytest over unittest",
    "User has two cats",
    "The user takes sertraline every morning",
    "User has asthma",
    "I have a dentist appointment on Friday",
    "User lives in Zürich",
    "I'm called Kat",
    "Our daughter Mila started school",
    "Katrin plays the cello",
    "User has a job interview at Google on 3 December at 14:00",
    "Reto is allergic to cats",
    "User needs to renew her passport",
    "User works as a backend developer",
    "The user speaks German and French",
    "User drives a Volvo",
    "User decided to move to Berlin",
    "User bought a flat in Bern",
    "Der Nutzer hat am 5. Mai Geburtstag",
    "Der Geburtstag des Nutzers ist der 5. Mai",
    "Ich bin gegen Nüsse allergisch",
    "Mein Sohn heißt Tim",
    "Katrins Geburtstag ist der 5. Mai",
    "Die Nutzerin spielt Cello",
    "L'anniversaire de l'utilisateur est le 5 mai",
    "Mon anniversaire est le 5 mai",
    "J'habite à Lyon",
    "L'utilisatrice joue du violoncelle",
    "Je préfère les tabulations",
    "El cumpleaños del usuario es el 5 de mayo",
    "Mi cumpleaños es el 5 de mayo",
    "Me llamo Ana",
    "El usuario vive en Madrid",
    "Il compleanno dell'utente è il 5 maggio",
    "Il mio compleanno è il 5 maggio",
    "Mi chiamo Anna",
    "L'utente vive a Roma",
    "O aniversário do usuário é 5 de maio",
    "Meu aniversário é 5 de maio",
    "O meu filho chama-se Rui",
    "O usuário mora em Lisboa",
    "День рождения пользователя — 5 мая",
    "Мой день рождения 5 мая",
    "У пользователя астма",
    "Меня зовут Катя",
    "Пользователь живёт в Берлине",
    "Моя жена работает врачом",
    "用户的生日是5月5日",
    "我的生日是5月5日",
    "我住在上海",
    "用户喜欢喝茶",
)

_OF_THE_PROJECT = (
    "The project uses pnpm, never npm",
    "The queue runs on port 5672",
    "Deploys go out on Thursdays via GitHub Actions to fly.io",
    "Decision: we moved from fly.io to Hetzner because fly was too expensive",
    "In this project the user prefers spaces",
    "User prefers tabs in this repo",
    "User prefers npm in shop",
    "The user's branch is feature-x",
    "The team prefers squash merges",
    "This works for all endpoints",
    "User decided to use Postgres instead of MySQL",
    "User wants the unit tests to run with pytest",
    "User is refactoring the auth module",
    "The user table has five columns",
    "The user's session expires after 30 minutes",
    "Users can log in by email",
    "We use Conventional Commits",
    "My branch is feature-x",
    "Remind me to fix `foo_bar`",
    "The API returns JSON",
    "Lena from the backend team is on leave until Monday",
    "The preferred formatter is ruff; run the linter first",
    "Das Team bevorzugt Squash-Merges",
    "Der Build läuft mit Gradle",
    "In diesem Projekt bevorzugt der Nutzer Leerzeichen",
    "Die Tests des Nutzers schlagen fehl",
    "Wir deployen donnerstags",
    "Le projet utilise pnpm",
    "Dans ce projet, l'utilisateur préfère les espaces",
    "L'équipe préfère les commits signés",
    "Les tests tournent avec pytest",
    "El proyecto usa pnpm",
    "En este proyecto el usuario prefiere espacios",
    "La base de datos es Postgres",
    "Il progetto usa pnpm",
    "In questo progetto l'utente preferisce gli spazi",
    "I test girano con pytest",
    "O projeto usa pnpm",
    "Neste projeto o usuário prefere espaços",
    "Os testes correm com pytest",
    "Проект использует pnpm",
    "В этом проекте пользователь предпочитает пробелы",
    "Команда предпочитает squash",
    "Тесты запускаются через pytest",
    "项目使用pnpm",
    "在这个项目中用户喜欢空格",
    "测试使用pytest",
)


@pytest.mark.parametrize("text", _OF_THE_USER)
def test_a_statement_about_the_user_as_a_person_is_personal(text: str) -> None:
    assert is_about_user(text, names=["Katrin"], project="github.com/ann/shop")


@pytest.mark.parametrize("text", _OF_THE_PROJECT)
def test_a_statement_about_the_project_is_not_personal(text: str) -> None:
    assert not is_about_user(text, names=["Katrin"], project="github.com/ann/shop")


def test_the_name_of_a_project_counts_only_as_it_is_written() -> None:
    assert is_about_user("User lives in Bern", project="/home/ann/bern")
    assert not is_about_user("User prefers spaces in bern", project="/home/ann/bern")
