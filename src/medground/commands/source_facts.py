"""The facts of a component that ships with medground, read from its source: nothing is imported, nothing is run.

Importing a model imports torch, which takes seconds, and the facts stand in the file in plain values. What a source
does not say plainly raises :class:`NotPlainError`, and whoever asked imports the class instead.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from medground.registry import documented_text

ROOT = Path(__file__).parents[1]
EMPTY_BASES = frozenset({"Protocol", "ABC", "object", "Generic"})
"""Bases without a constructor, parameters or facts of their own."""


class NotPlainError(Exception):
    """The source does not say it in plain values."""


@dataclass(frozen=True)
class Field:
    """One keyword of a constructor, as the source has it: its type, and its default as text (None: required)."""

    name: str
    annotation: str
    default: str | None


@dataclass(frozen=True)
class SourceFact:
    """A definition and the module that holds it."""

    module: str
    node: Any


def facts_of(module: str, name: str) -> dict[str, Any]:
    """Return the first line, the ``info`` and the parameters of the component of a module.

    Args:
        module: dotted, of medground.
        name: the component's name in it.

    Returns:
        ``what``; ``info``: field -> value; ``parameters``: list of :class:`Field`; ``meanings``: parameter -> sentence.

    Raises:
        NotPlainError: something of it is no plain value.
    """
    lines = _lineage(_component(module, name))
    texts = [_docstring(found) for found in lines]
    meanings = {key: text for doc in reversed(texts) for key, text in documented_text(doc).items()}
    head = next((text for text in texts if text), "") if texts[0] else ""
    return {
        "what": head.strip().splitlines()[0] if head else "",
        "info": _info(lines),
        "parameters": _constructor(lines),
        "meanings": meanings,
    }


@cache
def _tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError) as error:
        raise NotPlainError(module) from error


def _resolve(module: str, name: str) -> SourceFact:
    """Follow a name to its class or assignment, through imports inside medground."""
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return SourceFact(module, node)
        if (value := _assigned(node, name)) is not None:
            return SourceFact(module, value)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("medground"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _resolve(str(node.module), alias.name)
    raise NotPlainError(f"{module}: {name}")


def _assigned(node: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement gives to a name, in ``a = 1``, ``a: int = 1`` or ``a, b = 1, 2``."""
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    for target in targets if value is not None else []:
        if isinstance(target, ast.Name) and target.id == name:
            return value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            names = [one.id if isinstance(one, ast.Name) else "" for one in target.elts]
            if name in names:
                return value.elts[names.index(name)]
    return None


def _component(module: str, name: str) -> SourceFact:
    for node in _tree(module).body:
        values = [_assigned(statement, "name") for statement in node.body] if isinstance(node, ast.ClassDef) else []
        if any(isinstance(value, ast.Constant) and value.value == name for value in values):
            return SourceFact(module, node)
    raise NotPlainError(f"{module}: {name}")


def _lineage(found: SourceFact) -> list[SourceFact]:
    """Return a class and its bases in the order in which Python looks names up, for bases that do not meet again."""
    lines = [found]
    for base in found.node.bases:
        written = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(written, ast.Name) and written.id in EMPTY_BASES:
            continue
        if not isinstance(written, ast.Name):
            raise NotPlainError(ast.unparse(base))
        parent = _resolve(found.module, written.id)
        if not isinstance(parent.node, ast.ClassDef):
            raise NotPlainError(written.id)
        lines += _lineage(parent)
    if len({id(one.node) for one in lines}) < len(lines):
        raise NotPlainError(found.node.name)
    return lines


def _docstring(found: SourceFact) -> str:
    return inspect.cleandoc(ast.get_docstring(found.node) or "")


def _info(lines: list[SourceFact]) -> dict[str, Any]:
    for found in lines:
        for statement in found.node.body:
            if (given := _assigned(statement, "info")) is not None:
                return _made(found.module, given)
            if isinstance(statement, ast.FunctionDef) and statement.name == "info":
                return {}  # a property: an instance has it, a class has no facts
    return {}


def _made(module: str, call: ast.expr) -> dict[str, Any]:
    """Return the fields of ``Info(...)``: what is given, and the defaults of its dataclass."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise NotPlainError(ast.unparse(call))
    described = _resolve(module, call.func.id)
    fields = [s for s in described.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    names = [field.target.id for field in fields]  # type: ignore[union-attr]  # names alone were kept
    values = {name: _default(described.module, field.value) for name, field in zip(names, fields, strict=True)}
    values |= {name: _value(module, given) for name, given in zip(names, call.args, strict=False)}
    return values | {str(word.arg): _value(module, word.value) for word in call.keywords}


def _default(module: str, default: ast.expr | None) -> Any:
    if default is None:
        return None
    if isinstance(default, ast.Call) and ast.unparse(default.func) == "field":
        given = {word.arg: word.value for word in default.keywords}
        if "default_factory" in given and ast.unparse(given["default_factory"]) in ("dict", "list", "tuple"):
            return ()
        default = given.get("default")
    return _value(module, default) if default is not None else None


def _value(module: str, expression: ast.expr) -> Any:  # noqa: PLR0911  (one for each kind of expression)
    """Return a plain value: constants, their sums, tuples, mappings, texts with values in them, names of these."""
    match expression:
        case ast.Constant(value):
            return value
        case ast.Tuple(elements) | ast.List(elements):
            made = [one for element in elements for one in _spread(module, element)]
            return tuple(made) if isinstance(expression, ast.Tuple) else made
        case ast.Dict(keys, values):
            return _mapping(module, keys, values)
        case ast.JoinedStr(parts):
            return "".join(_piece(module, part) for part in parts)
        case ast.BinOp(left, ast.Add(), right):
            return _value(module, left) + _value(module, right)
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(module, operand)
        case ast.Name(name):
            found = _resolve(module, name)
            return _value(found.module, found.node)
        case ast.Call(ast.Name("Path"), [argument], []):
            return Path(_value(module, argument))
        case ast.DictComp(key, value, [ast.comprehension(ast.Tuple() as target, ast.Call() as call, [], 0)]):
            return _comprehended(module, key, value, target, call)
    raise NotPlainError(ast.unparse(expression))


def _spread(module: str, element: ast.expr) -> Iterator[Any]:
    if isinstance(element, ast.Starred):
        yield from _value(module, element.value)
    else:
        yield _value(module, element)


def _mapping(module: str, keys: list[ast.expr | None], values: list[ast.expr]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        made |= _value(module, value) if key is None else {_value(module, key): _value(module, value)}
    return made


def _comprehended(module: str, key: ast.expr, value: ast.expr, target: ast.Tuple, call: ast.Call) -> dict[Any, Any]:
    """Return ``{key: value for target in NAME.items()}`` of a mapping that is plain."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "items" and not call.args):
        raise NotPlainError(ast.unparse(call))
    made = {}
    for pair in _value(module, call.func.value).items():
        bound = {name.id: ast.Constant(one) for name, one in zip(target.elts, pair, strict=True)}  # type: ignore[attr-defined]
        made[_value(module, _bind(key, bound))] = _value(module, _bind(value, bound))
    return made


def _bind(expression: ast.expr, bound: Mapping[str, ast.Constant]) -> ast.expr:
    """Return an expression with constants in place of some names."""

    class Binder(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return bound.get(node.id, node)

    bound_expression: ast.expr = Binder().visit(deepcopy(expression))
    return bound_expression


def _piece(module: str, part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        if part.conversion != -1 or part.format_spec is not None:
            raise NotPlainError(ast.unparse(part))
        return str(_value(module, part.value))
    return str(_value(module, part))


def _constructor(lines: list[SourceFact]) -> list[Field]:
    """Return the keywords of the constructor that a class has or inherits."""
    for place, found in enumerate(lines):
        for statement in found.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return list(_keywords(found.module, statement.args))
        if any("dataclass" in ast.unparse(decorator) for decorator in found.node.decorator_list):
            return _fields(lines[place:])
    return []


def _keywords(module: str, arguments: ast.arguments) -> Iterator[Field]:
    placed = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults)) + list(arguments.defaults)
    named = [*zip(placed, defaults, strict=True)][1:]
    for argument, default in [*named, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
        annotation = _written(module, argument.annotation) if argument.annotation else "Any"
        yield Field(argument.arg, annotation, None if default is None else repr(_value(module, default)))


def _fields(lines: list[SourceFact]) -> list[Field]:
    """Return the fields of a dataclass as its parameters: required ones first, its own before those it inherits."""
    seen: dict[str, tuple[int, Field]] = {}
    for generation, found in reversed(list(enumerate(lines))):
        if any("dataclass" in ast.unparse(decorator) for decorator in found.node.decorator_list):
            seen |= {one.name: (generation, one) for one in _own_fields(found)}
    return [one for _, one in sorted(seen.values(), key=lambda pair: (pair[1].default is not None, pair[0]))]


def _own_fields(found: SourceFact) -> Iterator[Field]:
    for statement in found.node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        default, annotation = statement.value, ast.unparse(statement.annotation)
        if annotation.startswith("ClassVar") or annotation == "KW_ONLY":
            continue
        if isinstance(default, ast.Call) and ast.unparse(default.func) == "field":
            given = {word.arg: word.value for word in default.keywords}
            if isinstance(given.get("init"), ast.Constant) and not given["init"].value:  # type: ignore[attr-defined]
                continue
            default = given.get("default")
            if "default_factory" in given:
                raise NotPlainError(annotation)
        text = None if default is None else repr(_value(found.module, default))
        yield Field(statement.target.id, _written(found.module, statement.annotation), text)


def _written(module: str, annotation: ast.expr) -> str:
    """Return a type as text, with the choices that a name of the module stands for written out."""
    if isinstance(annotation, ast.BinOp):
        return " | ".join(_written(module, side) for side in (annotation.left, annotation.right))
    if isinstance(annotation, ast.Name):
        try:
            found = _resolve(module, annotation.id)
        except NotPlainError:
            return annotation.id
        if isinstance(found.node, ast.Subscript) and ast.unparse(found.node.value) == "Literal":
            return ast.unparse(found.node)
    return ast.unparse(annotation)
