"""The parser of CUDA C++, HIP, OpenCL C and Metal: declarations, statements, functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.parser import ARRAY_OF_LANES, SourceParser
from workbench.emulator.source.syntax import (
    AsmStatement,
    BlockStatement,
    Cast,
    Construct,
    DeclarationStatement,
    Expr,
    IfStatement,
    LoopStatement,
    SizeOf,
    SourceFunction,
    SourceModule,
    SourceParameter,
    SourceStatement,
    SourceStruct,
    Space,
    Type,
)
from workbench.emulator.source.tokens import Token, shown
from workbench.emulator.source.values import PARTS

_CONSTANT = frozenset({"const", "constexpr"})
_PLAIN = frozenset(
    "static inline extern volatile register __device__ __host__ __forceinline__ __noinline__"
    " __restrict__ __restrict restrict typename struct".split()
)
_WITH_ARGUMENTS = frozenset("__align__ alignas __attribute__ __launch_bounds__ __declspec".split())
_METAL_ROLES = {
    "threadgroup_position_in_grid": "group",
    "thread_position_in_threadgroup": "item",
    "thread_position_in_grid": "all",
    "thread_index_in_threadgroup": "number",
    "threads_per_threadgroup": "items",
    "threadgroups_per_grid": "groups",
}
_INTEGER_WORDS = frozenset("unsigned signed short int long char".split())
_OPERATORS = frozenset("+ - * / += -= *= /=".split())


@dataclass
class _Head:
    """The words before the names of a declaration."""

    type: Type | None = None
    is_kernel: bool = False
    is_constant: bool = False
    is_auto: bool = False
    group: tuple[int, ...] | None = None
    most_items: int | None = None


class CParser(SourceParser):
    """Reads a text of a language like C. `module` has its functions."""

    def module(self) -> SourceModule:
        """Return the text's functions and constants. Errors: SourceError."""
        module = SourceModule()
        while self.token.kind != "end":
            if self.accept(";"):
                continue
            if self.accept("using"):
                while self.token.kind != "end" and not self.accept(";"):
                    self.place += 1
                continue
            if self.is_next("typedef"):
                self._typedef()
                continue
            if self.is_next("struct"):
                self._struct()
                continue
            self._outside(module)
        return module

    def _outside(self, module: SourceModule) -> None:
        """Read a function or a constant."""
        at = self.token
        head = self._head()
        if head.type is None and not head.is_auto:
            raise self.fault(f"a declaration is expected here, and {shown(self.token)} stands here")
        if self.ahead().text != "(" and not self.is_next("operator"):
            for each in self._declared(at, head):
                assert isinstance(each, DeclarationStatement)
                module.globals.append(each)
            return
        name = self.name("the name of a function").text
        if name == "operator":
            sign = self.next().text
            if sign not in _OPERATORS:
                raise self.fault(f"an operator {sign} is not supported", "a function with a name")
            name += sign
        assert head.type is not None
        parameters = self._parameters()
        if self.accept(";"):  # declared before its definition
            return
        body = self.block()
        group = head.group, head.most_items
        function = SourceFunction(at, name, head.type, parameters, body, head.is_kernel, *group)
        module.functions.setdefault(name, []).append(function)

    def _typedef(self) -> None:
        """Read a typedef: a new name for a type, or for a vector of `ext_vector_type`."""
        self.expect("typedef")
        if self.is_next("struct") and "{" in (self.ahead().text, self.ahead(2).text):
            self.place += 1 if self.ahead().text == "{" else 2
            parts = self._parts()
            self._define_struct(self.name("the name of a struct").text, parts)
            self.expect(";")
            return
        head = self._head()
        if head.type is None:
            raise self.fault("a typedef names no type here")
        name = self.name("the new name of a type").text
        dtype = head.type.dtype
        if self.accept("__attribute__"):
            for sign in "((":
                self.expect(sign)
            if self.name("an attribute").text != "ext_vector_type":
                raise self.fault("only ext_vector_type is supported here")
            self.expect("(")
            dtype = dtype.scalar.vec(self.whole_number(self.expression()))
            for sign in ")))":
                self.expect(sign)
        self.expect(";")
        self.types[name] = dtype

    def _struct(self) -> None:
        """Read a struct."""
        self.expect("struct")
        head = _Head()
        while self._qualifier(head):
            pass
        name = self.name("the name of a struct").text
        self._define_struct(name, self._parts())
        self.expect(";")

    def _parts(self) -> list[tuple[str, Type]]:
        """Return the parts of a struct, in braces."""
        self.expect("{")
        parts: list[tuple[str, Type]] = []
        while not self.accept("}"):
            kind = self.required_type()
            if kind.is_pointer:
                raise self.fault("a pointer in a struct is not supported", "a variable")
            while True:
                name = self.name("the name of a part").text
                sizes: list[Expr | None] = []
                while self.accept("["):
                    sizes.append(self.expression())
                    self.expect("]")
                parts.append((name, replace(kind, sizes=tuple(sizes))))
                if not self.accept(","):
                    break
            self.expect(";")
        return parts

    def _define_struct(self, name: str, parts: list[tuple[str, Type]]) -> None:
        """Give a name to a struct; one of x, y, z, w, or of an array `s`, is a vector."""
        names, kinds = [each for each, _ in parts], {kind for _, kind in parts}
        kind = parts[0][1] if len(kinds) == 1 and parts[0][1].struct is None else None
        if kind is not None and names == [ARRAY_OF_LANES] and len(kind.sizes) == 1:
            size = kind.sizes[0]
            assert size is not None
            self.types[name] = kind.dtype.scalar.vec(self.whole_number(size))
        elif kind and not kind.sizes and len(names) > 1 and names == [*PARTS[: len(names)]]:
            self.types[name] = kind.dtype.scalar.vec(len(names))
        else:
            self.structs[name] = SourceStruct(name, tuple(parts))

    # types

    def _head(self) -> _Head:
        """Return the qualifiers and the type that stand here."""
        head = _Head()
        space: Space = ""
        words: list[str] = []
        while True:
            token = self.token
            if token.text in self.language.spaces:
                space = self.language.spaces[token.text]
                self.place += 1
            elif self._qualifier(head):
                pass
            elif token.kind == "name" and token.text == "auto" and not words:
                head.is_auto = True
                self.place += 1
            elif token.kind == "name" and self._is_type_word(words):
                words.append(token.text)
                self.place += 1
            else:
                break
        if not words:
            return head
        if words[0] in self.structs:
            head.type = Type(dtypes.void, space=space, struct=self.structs[words[0]])
            return head
        head.type = Type(self._named(words), space=space)
        return head

    def _is_type_word(self, words: list[str]) -> bool:
        text = self.token.text
        if text in _INTEGER_WORDS:
            return not words or words[-1] in _INTEGER_WORDS
        return not words and (text in self.types or text in self.structs)

    def _named(self, words: list[str]) -> DType:
        """Return the type of words such as `unsigned long long int`."""
        name = " ".join(words)
        if name in self.types:
            return self.types[name]
        is_unsigned = "unsigned" in words
        rest = [w for w in words if w not in ("unsigned", "signed", "int")] or ["int"]
        name = " ".join(rest)
        known = ("char", "short", "int", "long", "long long")
        if name not in known or name == "long long" and name not in self.types:
            raise self.fault(f"`{' '.join(words)}` is no type of {self.language.name}")
        return self.types[f"unsigned {name}"] if is_unsigned else self.types[name]

    def _qualifier(self, head: _Head) -> bool:
        """Go past a word that is no type; return whether there was one."""
        text = self.token.text
        if self.token.kind == "string":  # extern "C"
            self.place += 1
        elif text == "[[":
            while self.token.kind != "end" and not self.accept("]"):
                self.place += 1
            self.expect("]")
        elif self.token.kind != "name":
            return False
        elif text in self.language.kernel_words:
            head.is_kernel = True
            self.place += 1
        elif text in _CONSTANT:
            head.is_constant = True
            self.place += 1
        elif text in _WITH_ARGUMENTS:
            self.place += 1
            self._attribute(head)
        elif text in _PLAIN:
            self.place += 1
        else:
            return False
        return True

    def _attribute(self, head: _Head) -> None:
        """Go past the parentheses after an attribute; note the size of a group."""
        begin = self.place
        depth = 0
        while True:
            if self.token.kind == "end":
                raise self.fault("a parenthesis does not close")
            text = self.next().text
            depth += (text == "(") - (text == ")")
            if depth == 0:
                break
        name = self.tokens[begin - 1].text
        words = [t.text for t in self.tokens[begin : self.place]]
        numbers = [int(w) for w in words if w.isdigit()]
        if "reqd_work_group_size" in words:
            head.group = tuple(numbers)
        elif name == "__launch_bounds__" and numbers:
            head.most_items = numbers[0]

    def type_here(self) -> Type | None:
        begin = self.place
        head = self._head()
        if head.type is None:
            self.place = begin
            return None
        return self._pointer(head.type)

    def _pointer(self, kind: Type) -> Type:
        while self.is_next("*", "const", "__restrict__", "restrict", "volatile"):
            if self.next().text == "*":
                if kind.is_pointer:
                    raise self.fault("a pointer to a pointer is not supported")
                kind = replace(kind, is_pointer=True)
        return kind

    # expressions

    def prefix(self) -> Expr | None:
        """Return a cast, a constructor or a size: `(float4)(..)`, `(float4 *)&x`, `float4(..)`,
        `static_cast<float>(x)`, `sizeof(float)`."""
        at = self.token
        if self.accept("sizeof"):
            return self._size_of(at)
        if self.accept("static_cast", "reinterpret_cast"):
            self.expect("<")
            result = self.required_type()
            self.expect(">")
            self.expect("(")
            inside = self.expression()
            self.expect(")")
            return self.suffixed(Cast(at, result, inside))
        if self.is_next("("):
            self.place += 1
            kind = self.type_here()
            if kind is None or not self.is_next(")"):
                self.place -= 1
                if kind is not None:
                    raise self.fault(f"`)` is expected after a type, not {shown(self.token)}")
                return None
            self.place += 1
            if kind.dtype.count > 1 and not kind.is_pointer and self.is_next("("):
                return self.suffixed(Construct(at, kind, self.arguments()))
            with self.deeper():
                return Cast(at, kind, self.unary())
        if self.token.kind != "name" or self.ahead().text not in ("(", "{"):
            return None
        if self.token.text not in self.types and self.token.text not in self.structs:
            return None
        kind = self.type_here()
        assert kind is not None
        parts = self.braces().parts if self.is_next("{") else self.arguments()
        return self.suffixed(Construct(at, kind, parts))

    def _size_of(self, at: Token) -> SizeOf:
        if self.is_next("("):
            begin = self.place
            self.place += 1
            kind = self.type_here()
            if kind is not None:
                self.expect(")")
                return SizeOf(at, kind, None)
            self.place = begin
        with self.deeper():
            return SizeOf(at, None, self.unary())

    def arguments(self) -> tuple[Expr, ...]:
        """Return the arguments of a call; a type, as of __builtin_bit_cast, is a Construct of no
        parts."""
        self.expect("(")
        parts: list[Expr] = []
        while not self.accept(")"):
            at = self.token
            begin = self.place
            kind = self.type_here() if self.token.kind == "name" else None
            if kind is not None and self.is_next(",", ")"):
                parts.append(Construct(at, kind, ()))
            else:
                self.place = begin
                parts.append(self.expression())
            if not self.is_next(")"):
                self.expect(",")
        return tuple(parts)

    # functions

    def _parameters(self) -> tuple[SourceParameter, ...]:
        self.expect("(")
        parameters: list[SourceParameter] = []
        while not self.accept(")"):
            at = self.token
            head = self._head()
            if head.type is None:
                raise self.fault(f"a type is expected here, and {shown(at)} stands here")
            if head.type.dtype is dtypes.void and self.is_next(")"):
                continue
            kind = self._pointer(head.type)
            is_reference = self.accept("&") and not head.is_constant
            while self.is_next("const", "__restrict__", "restrict"):
                self.place += 1
            name = self.name("the name of a parameter")
            role, number = self._role() if self.is_next("[[") else ("", ())
            if self.is_next("["):
                self._size_in_brackets(may_be_empty=True)
                kind = replace(kind, is_pointer=True)
            parameters.append(
                SourceParameter(name, name.text, kind, is_reference, role, number, head.is_constant)
            )
            if not self.is_next(")"):
                self.expect(",")
        return tuple(parameters)

    def _role(self) -> tuple[str, tuple[int, ...]]:
        """Return what an attribute of Metal says of a parameter: its role, the number of its
        buffer."""
        begin = self.place
        self._qualifier(_Head())
        words = [t.text for t in self.tokens[begin : self.place]]
        role = next((role for word, role in _METAL_ROLES.items() if word in words), "")
        numbers = [int(word) for word in words if word.isdigit()]
        return role, tuple(numbers) if "buffer" in words else ()

    def _size_in_brackets(self, may_be_empty: bool = False) -> int:
        self.expect("[")
        if may_be_empty and self.accept("]"):
            return 0
        size = self.whole_number(self.expression())
        self.expect("]")
        return size

    # statements

    def _one(self) -> SourceStatement:
        """Return the statement that stands here as one."""
        at = self.token
        with self.deeper():
            statements = self.statement()
        return (
            statements[0]
            if len(statements) == 1
            else BlockStatement(at, self.end, tuple(statements))
        )

    def statement(self) -> list[SourceStatement]:
        at = self.token
        if self.is_next("{"):
            return [self.block()]
        if self.accept(";"):
            return []
        if self.accept("if"):
            return [self._if(at)]
        if self.accept("for"):
            return [self._for(at)]
        if self.accept("while"):
            self.expect("(")
            condition = self.assigned()
            self.expect(")")
            end = self.end
            return [LoopStatement(at, end, (), condition, (), self._one())]
        if self.accept("do"):
            body = self._one()
            self.expect("while")
            self.expect("(")
            condition = self.assigned()
            self.expect(")")
            self.expect(";")
            return [
                LoopStatement(at, at.offset + 2, (), condition, (), body, is_checked_after=True)
            ]
        if at.text in ("break", "continue", "return") and at.kind == "name":
            return [self.jump()]
        if at.text in ("asm", "__asm__"):
            return [self._asm()]
        if self.is_next("typedef"):
            self._typedef()
            return []
        if self.is_next("switch"):
            return [self.switch()]
        if at.text in ("goto", "case", "default"):
            raise self.fault(f"{shown(at)} is not supported here", "if and else")
        if at.text == "__attribute__" and self.ahead().text == "(":
            self._qualifier(_Head())
            return self.statement()  # of a loop: how it is unrolled
        statements = self._simple()
        self.expect(";")
        return [replace(s, end=self.end) if s is statements[-1] else s for s in statements]

    def _if(self, at: Token) -> IfStatement:
        self.accept("constexpr")
        self.expect("(")
        condition = self.assigned()
        self.expect(")")
        end = self.end
        yes = self._one()
        no = self._one() if self.accept("else") else None
        return IfStatement(at, end, condition, yes, no)

    def _for(self, at: Token) -> LoopStatement:
        self.expect("(")
        first = [] if self.is_next(";") else self._simple()
        self.expect(";")
        condition = None if self.is_next(";") else self.expression()
        self.expect(";")
        step: list[SourceStatement] = []
        while not self.is_next(")"):
            step += self._simple()
            if not self.is_next(")"):
                self.expect(",")
        self.expect(")")
        end = self.end
        return LoopStatement(at, end, tuple(first), condition, tuple(step), self._one())

    def _simple(self) -> list[SourceStatement]:
        """Return declarations, an assignment or a call, without the sign that ends it."""
        at = self.token
        begin = self.place
        head = self._head()
        is_call = self.is_next("(") or self.is_next("{")
        if (head.type is not None or head.is_auto) and not is_call:
            return self._declared(at, head, ends=False)
        if self.place != begin and not is_call:
            raise self.fault(f"a type is expected here, and {shown(self.token)} stands here")
        self.place = begin
        value = self.unary() if self._begins_target() else self.expression()
        return [self.assignment(at, value, dtypes.int32)]

    def _begins_target(self) -> bool:
        """Whether the operand that stands here is assigned to, as in `*p = x`."""
        return self.is_next("*")

    def _declared(self, at: Token, head: _Head, ends: bool = True) -> list[SourceStatement]:
        """Return the variables of a declaration."""
        declared: list[SourceStatement] = []
        while True:
            kind = head.type and self._pointer(head.type)
            is_constant = head.is_constant and not (kind and kind.is_pointer)
            name = self.name("the name of a variable")
            if self.accept("&"):
                raise self.fault("a reference is not supported", "a variable")
            sizes: list[Expr | None] = []
            while self.is_next("["):
                self.place += 1
                if self.accept("]"):
                    sizes.append(None)
                    continue
                sizes.append(self.expression())
                self.expect("]")
            while self.is_next("__attribute__"):
                self._qualifier(_Head())
            value: Expr | None = None
            if self.accept("="):
                value = self.assigned()
            elif self.is_next("{"):
                value = self.braces()
            if sizes and kind is not None:
                kind = replace(kind, sizes=tuple(sizes))
            declared.append(DeclarationStatement(at, self.end, name.text, kind, value, is_constant))
            if not self.accept(","):
                break
            at = self.token
        if ends:
            self.expect(";")
        return declared

    def _asm(self) -> AsmStatement:
        """Read inline assembly: its text, outputs and inputs."""
        at = self.next()
        self.accept("volatile")
        self.expect("(")
        template = ""
        while self.token.kind == "string":
            template += self.next().text[1:-1]
        operands: list[list[tuple[str, Expr]]] = []
        while self.accept(":", "::"):
            count = 2 if self.tokens[self.place - 1].text == "::" else 1
            operands += [[] for _ in range(count)]
            while self.token.kind == "string":
                constraint = self.next().text[1:-1]
                if not self.is_next("("):  # "memory"
                    continue
                self.expect("(")
                operands[-1].append((constraint, self.expression()))
                self.expect(")")
                if not self.accept(","):
                    break
        self.expect(")")
        self.expect(";")
        outputs, inputs = (tuple(each) for each in (*operands, [], [])[:2])
        return AsmStatement(at, self.end, template, outputs, inputs)
