"""`marag prompts list|show`: the prompts as the model sees them."""

from typing import Annotated

import typer

from .shared.command import Assignments, Json, command, console, group, plain, print_json, say, settings_of

_PROMPTS = group("prompts", "Show the prompts, both built-in and from PROMPTS_DIR.")


@command(_PROMPTS)
def list_(set_: Assignments = None, json_: Json = False) -> None:
    """List the prompts: digest, placeholders, and which are your own."""
    from ..prompts import check_prompts, prompt, prompt_names

    settings = settings_of(set_)
    folder, methods = settings.prompts_dir, settings.methods_dir
    check_prompts(folder, methods=methods)
    found = [prompt(name, folder, methods=methods) for name in prompt_names(methods)]
    own = {each.name for each in found if each != prompt(each.name, methods=methods)}
    if json_:
        rows = [(each.name, each.digest, sorted(each.values), each.name in own) for each in found]
        print_json([dict(zip(("name", "digest", "values", "own"), row, strict=True)) for row in rows])
        return
    for each in found:
        values = " ".join(f"${value}" for value in sorted(each.values))
        mine = " [green](your own)[/]" if each.name in own else ""
        console().print(f"[bold]{each.name}[/]{mine} [dim]{each.digest}[/] {plain(values)}")


@command(_PROMPTS)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a prompt; `marag prompts list` lists them.")],
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Show a prompt as the model sees it, with $NAME for each placeholder."""
    from ..prompts import check_prompts, prompt

    settings = settings_of(set_)
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    found = prompt(name, settings.prompts_dir, methods=settings.methods_dir)
    text = found.text(**{value: f"${value}" for value in found.values})
    if json_:
        print_json({"name": found.name, "digest": found.digest, "values": sorted(found.values), "text": text})
    else:
        say(text)
