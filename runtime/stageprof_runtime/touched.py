"""Names that a statement of a program sets, changes or looks at, as its text says."""

from __future__ import annotations

import ast


def sets(statement: ast.AST) -> set[str]:
    """Names that it sets, whatever they were: not those that are added to."""
    if isinstance(statement, ast.AugAssign | ast.While):
        return set()
    nodes = ast.walk(statement)
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def stores(statement: ast.stmt) -> set[str]:
    """Names that a statement sets, or whose content it may change."""
    found = {base.id for base in _changed(statement)}
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        found.add(statement.target.id)
    return found | sets(statement)


def loads(node: ast.AST) -> set[str]:
    """Names that are looked at, but for those whose content is only changed."""
    changed = set(map(id, _changed(node)))
    nodes = (n for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in changed)
    found = {n.id for n in nodes if isinstance(n.ctx, ast.Load)}
    if isinstance(node, ast.AugAssign):
        found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return found


def _changed(node: ast.AST) -> list[ast.Name]:
    """Names in `name[..] = `, `name.x = ` and in `name.method(..)` as a statement of its own."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [t for t in node.targets if not isinstance(t, ast.Name)]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign) and not isinstance(node.target, ast.Name):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        targets = [function.value] if isinstance(function, ast.Attribute) else []
    found = [_base(target) for target in targets]
    return [base for base in found if base is not None]


def _base(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None
