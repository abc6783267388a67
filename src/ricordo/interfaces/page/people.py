"""Entities (people and things): profiles, relations, and a preview before a merge or split."""

from __future__ import annotations

from starlette.responses import Response

from ricordo.errors import InvalidError
from ricordo.interfaces.page.visit import Visit, link
from ricordo.model import Profile

_MOST = 300


async def show_all(visit: Visit) -> Response:
    """Show all entities, the most mentioned first."""
    if name := visit.asked("name"):
        profile: Profile = await visit.call("entity", name=name, as_of=visit.as_of)
        return visit.go(link("entity", profile.id))
    visit.caller.require("store_view.holdings")
    entities = (await visit.memory.store_view.holdings(visit.as_of)).entities.values()
    ranked = sorted(entities, key=lambda each: (-each.mention_count, each.name))[:_MOST]
    return visit.page("people.html", entities=ranked, count=len(entities))


async def show(visit: Visit) -> Response:
    """Show the profile of an entity."""
    profile: Profile = await visit.call("entity", name=visit.named(), limit=50, as_of=visit.as_of)
    return visit.page("entity.html", profile=profile)


async def protect(visit: Visit) -> Response:
    """Protect the facts about an entity from fading, or end the protection."""
    is_protected = visit.given("protected") == "1"
    await visit.act(
        "protected" if is_protected else "unprotected", "update_entity", entity=visit.named(), protected=is_protected
    )
    return visit.go(link("entity", visit.named()))


async def add_name(visit: Visit) -> Response:
    """Add an alias to an entity."""
    await visit.act("named", "update_entity", entity=visit.named(), aliases=[visit.given("name") or ""])
    return visit.go(link("entity", visit.named()))


async def ask_to_merge(visit: Visit) -> Response:
    """Show two entities side by side before a merge."""
    keep: Profile = await visit.call("entity", name=visit.named(), limit=5)
    other: Profile = await visit.call("entity", name=visit.asked("other") or "", limit=5)
    if keep.id == other.id:
        raise InvalidError(visit.texts("people.same"))
    return visit.page("merge.html", keep=keep, other=other)


async def merge(visit: Visit) -> Response:
    """Merge two entities."""
    kept = await visit.act("merged", "merge", keep=visit.named(), other=visit.form.get("other", ""))
    return visit.go(link("entity", kept.id))


async def ask_to_split(visit: Visit) -> Response:
    """Show which names stay and which move to the new entity."""
    profile: Profile = await visit.call("entity", name=visit.named(), limit=50)
    names = [name for name in visit.request.query_params.getlist("name") if name in (profile.name, *profile.aliases)]
    stay = [name for name in (profile.name, *profile.aliases) if name not in names]
    if not names or not stay:
        raise InvalidError(visit.texts("people.choose_names"))
    using = [node for node in profile.facts if any(name in node.content for name in names)]
    return visit.page("split.html", profile=profile, names=names, stay=stay, using=using)


async def split(visit: Visit) -> Response:
    """Split an entity into two."""
    names = [name for name in visit.form.get("names", "").splitlines() if name]
    kept, _ = await visit.act("split", "split", entity=visit.named(), names=names)
    return visit.go(link("entity", kept.id))


PAGES = (
    ("GET", "/page/people", "people", show_all),
    ("GET", "/page/entity", "people", show),
    ("POST", "/page/entity/protect", "people", protect),
    ("POST", "/page/entity/name", "people", add_name),
    ("GET", "/page/entity/merge", "people", ask_to_merge),
    ("POST", "/page/entity/merge", "people", merge),
    ("GET", "/page/entity/split", "people", ask_to_split),
    ("POST", "/page/entity/split", "people", split),
)
