"""The parser of WGSL: declarations, statements, functions."""

from __future__ import annotations

from dataclasses import replace

from workbench.base.dtypes import dtypes
from workbench.emulator.source.parser import SUM, SourceParser
from workbench.emulator.source.syntax import (
    Construct,
    DeclarationStatement,
    EvaluationStatement,
    Expr,
    IfStatement,
    LoopStatement,
    Name,
    SourceFunction,
    SourceModule,
    SourceParameter,
    SourceStatement,
    SourceStruct,
    Space,
    Type,
)
from workbench.emulator.source.tokens import Token, shown

_ROLES = {
    "workgroup_id": "group",
    "local_invocation_id": "item",
    "global_invocation_id": "all",
    "local_invocation_index": "number",
    "num_workgroups": "groups",
}
_ALIASES = {"vec2f": "f32", "vec2i": "i32", "vec2u": "u32", "vec3f": "f32", "vec3i": "i32",
            "vec3u": "u32", "vec4f": "f32", "vec4i": "i32", "vec4u": "u32"}  # fmt: skip


class WgslParser(SourceParser):
    """Reads a text of WGSL."""

    def module(self) -> SourceModule:
        """Return the text's functions, memory and constants. Errors: SourceError."""
        module = SourceModule()
        while self.token.kind != "end":
            if self.accept(";"):
                continue
            if self.accept("enable", "requires", "diagnostic"):
                while self.token.kind != "end" and not self.accept(";"):
                    self.place += 1
                continue
            attributes = self._attributes()
            if self.accept("struct"):
                self._struct()
            elif self.is_next("fn"):
                function = self._function(attributes)
                module.functions.setdefault(function.name, []).append(function)
            elif self.is_next("var", "const", "override"):
                declared = self._variable()
                self.expect(";")
                kind = declared.type
                if kind is not None and kind.space == "global":
                    number = tuple(
                        self.whole_number(each)
                        for word in ("group", "binding")
                        for each in attributes.get(word, ())
                    )
                    parameter = SourceParameter(
                        declared.at,
                        declared.name,
                        kind,
                        number=number,
                        is_constant=declared.is_constant,
                    )
                    module.bindings.append(parameter)
                else:
                    module.globals.append(declared)
            elif self.accept("alias"):
                name = self.name("a name").text
                self.expect("=")
                self.types[name] = self.required_type().dtype
                self.expect(";")
            else:
                because = f"a function or a variable is expected here, not {shown(self.token)}"
                raise self.fault(because)
        return module

    def _struct(self) -> None:
        """Read the parts of a struct."""
        name = self.name("the name of a struct").text
        self.expect("{")
        parts, roles = [], []
        while not self.accept("}"):
            attributes = self._attributes()
            part = self.name("the name of a part")
            self.expect(":")
            parts.append((part.text, self.required_type()))
            roles.append(self._role(attributes, part))
            if not self.is_next("}"):
                self.expect(",")
        self.structs[name] = SourceStruct(name, tuple(parts), tuple(roles))

    # types

    def type_here(self) -> Type | None:
        at = self.token
        if at.kind != "name":
            return None
        if at.text in self.structs:
            self.place += 1
            return Type(dtypes.void, struct=self.structs[at.text])
        if at.text in _ALIASES:
            self.place += 1
            return Type(self.types[_ALIASES[at.text]].vec(int(at.text[3])))
        if at.text in self.types:
            self.place += 1
            return Type(self.types[at.text])
        is_vector = at.text in ("vec2", "vec3", "vec4")
        if not is_vector and at.text not in ("array", "atomic", "ptr") or self.ahead().text != "<":
            return None
        self.place += 2
        if at.text == "ptr":
            raise self.fault("a pointer is not supported", "the array itself", at)
        inside = self.required_type()
        if inside.struct is not None:
            because = f"an {at.text} of {inside} is not supported"
            raise self.fault(because, f"an {at.text} for each part", at)
        sizes: tuple[Expr | None, ...] = ()
        if at.text == "array":
            size = None
            if self.accept(","):
                size = self._binary(SUM)  # no comparison: `>` closes the type
            sizes = (size, *inside.sizes)
        self.expect(">")
        if is_vector:
            return Type(inside.dtype.scalar.vec(int(at.text[3])))
        return Type(inside.dtype, sizes=sizes, is_atomic=inside.is_atomic or at.text == "atomic")

    def prefix(self) -> Expr | None:
        """Return a constructor: `f32(x)`, `vec4<f32>(..)`."""
        at, begin = self.token, self.place
        if self.token.text in ("vec2", "vec3", "vec4") and self.ahead().text == "(":
            because = f"`{at.text}` without the type of its parts is not supported"
            raise self.fault(because, f"{at.text}<f32>(..)")
        kind = self.type_here()
        if kind is None or not self.is_next("("):
            self.place = begin
            return None
        return self.suffixed(Construct(at, kind, self.arguments()))

    # functions

    def _attributes(self) -> dict[str, tuple[Expr, ...]]:
        """Return the attributes that stand here: `@workgroup_size(16, 16)`."""
        attributes: dict[str, tuple[Expr, ...]] = {}
        while self.accept("@"):
            name = self.name("an attribute").text
            attributes[name] = self.arguments() if self.is_next("(") else ()
        return attributes

    def _function(self, attributes: dict[str, tuple[Expr, ...]]) -> SourceFunction:
        at = self.expect("fn")
        name = self.name("the name of a function").text
        parameters = self._parameters()
        result = Type(dtypes.void)
        if self.is_next("-") and self.ahead().text == ">" or self.is_next("->"):
            self.place += 1
            self.accept(">")
            result = self.required_type()
        group = None
        if "workgroup_size" in attributes:
            group = tuple(self.whole_number(each) for each in attributes["workgroup_size"])
        is_kernel = "compute" in attributes
        return SourceFunction(at, name, result, parameters, self.block(), is_kernel, group)

    def _parameters(self) -> tuple[SourceParameter, ...]:
        self.expect("(")
        parameters = []
        while not self.accept(")"):
            attributes = self._attributes()
            name = self.name("the name of a parameter")
            self.expect(":")
            kind = self.required_type()
            role = self._role(attributes, name)
            parameters.append(SourceParameter(name, name.text, kind, role=role))
            if not self.is_next(")"):
                self.expect(",")
        return tuple(parameters)

    def _role(self, attributes: dict[str, tuple[Expr, ...]], name: Token) -> str:
        """Return what the launch passes as a parameter; "" for none."""
        if "builtin" not in attributes:
            return ""
        (value,) = attributes["builtin"] or (Name(name, ""),)
        word = value.name if isinstance(value, Name) else ""
        if word not in _ROLES:
            because = f"the builtin {word or '?'} is not supported"
            raise self.fault(because, ", ".join(_ROLES), name)
        return _ROLES[word]

    # statements

    def _variable(self) -> DeclarationStatement:
        at = self.next()
        space: Space = ""
        is_constant = at.text != "var"
        if self.accept("<"):
            word = self.name("a space").text
            spaces = self.language.spaces
            if word not in spaces:
                raise self.fault(f"the space {word} is not supported", ", ".join(spaces))
            space = spaces[word]
            access = self.name("read or read_write").text if self.accept(",") else "read"
            is_constant = space == "global" and access == "read"
            self.expect(">")
        name = self.name("the name of a variable").text
        kind = self.required_type() if self.accept(":") else None
        if kind is not None:
            is_pointer = space == "global"
            kind = replace(kind, is_pointer=is_pointer, space=space)
        value = self.expression() if self.accept("=") else None
        return DeclarationStatement(at, self.end, name, kind, value, is_constant)

    def statement(self) -> list[SourceStatement]:
        at = self.token
        if self.is_next("{"):
            return [self.block()]
        if self.accept(";"):
            return []
        if self.is_next("if"):
            return [self._if()]
        if self.accept("for"):
            return [self._for(at)]
        if self.accept("while"):
            condition = self.expression()
            end = self.end
            return [LoopStatement(at, end, (), condition, (), self.block())]
        if self.accept("loop"):
            end = self.end
            return [LoopStatement(at, end, (), None, (), self.block())]
        if at.text in ("break", "continue", "return"):
            return [self.jump()]
        if self.is_next("switch"):
            return [self.switch()]
        if at.text in ("continuing", "discard"):
            hint = "its statements where the round ends" if at.text == "continuing" else "return"
            raise self.fault(f"{shown(at)} is not supported", hint)
        simple = self._simple()
        self.expect(";")
        return [simple]

    def _if(self) -> IfStatement:
        at = self.expect("if")
        with self.deeper():
            condition = self.expression()
            end = self.end
            yes = self.block()
            no: SourceStatement | None = None
            if self.accept("else"):
                no = self._if() if self.is_next("if") else self.block()
        return IfStatement(at, end, condition, yes, no)

    def _for(self, at: Token) -> LoopStatement:
        self.expect("(")
        first = () if self.is_next(";") else (self._simple(),)
        self.expect(";")
        condition = None if self.is_next(";") else self.expression()
        self.expect(";")
        step = () if self.is_next(")") else (self._simple(),)
        self.expect(")")
        end = self.end
        return LoopStatement(at, end, first, condition, step, self.block())

    def _simple(self) -> SourceStatement:
        at = self.token
        if self.is_next("let", "var", "const"):
            return self._variable()
        if self.accept("_"):
            self.expect("=")
            return EvaluationStatement(at, self.end, self.expression())
        return self.assignment(at, self.expression(), None)
