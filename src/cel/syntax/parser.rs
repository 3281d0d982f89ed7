//! Parses the grammar from the whole expression down to chains of selections; [`super::primary`] parses the leaves.
//!
//! Each rule is a pair of functions: one parses, and gives up at the first unexpected token; the other reports the error, lets
//! [`Tokens`] skip to where parsing can continue, and returns what was parsed. The tree is built during parsing. It is discarded if
//! there was any error, but errors found in it are reported together with the syntax errors.

use crate::source::{Source, Span};

use super::Options;
use super::ast::{Expr, ExprId, Literal, MacroCall};
use super::builder::Builder;
use super::grammar::{FIRST_OF_EXPR, FIRST_OF_MEMBER, PRODUCTS, Place, RELATIONS, Rule, SUMS};
use super::macros::{Expander, Site};
use super::recovery::{Fault, Stop, Tokens};
use super::token::{Kind, Token};

/// An expression that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) id: ExprId,
    /// Offset of its first token.
    pub(super) start: u32,
    /// Levels of operators, selections, indices and member calls, which are limited.
    pub(super) height: u32,
}

/// Reads an expression, once.
#[derive(Debug)]
pub(super) struct Parser<'s, 'o> {
    pub(super) tokens: Tokens<'s>,
    pub(super) build: Builder,
    pub(super) options: &'o Options,
}

impl<'s, 'o> Parser<'s, 'o> {
    pub(super) fn new(source: Source<'s>, options: &'o Options) -> Self {
        Self { tokens: Tokens::new(source), build: Builder::default(), options }
    }

    /// Parses the whole text.
    pub(super) fn start(&mut self) -> Result<Parsed, Stop> {
        self.tokens.begin()?;
        self.tokens.enter(Rule::Start, Place::End)?;
        let parsed = self.expr(Place::Eof)?;
        let outcome = self.tokens.expect(Place::Eof, Kind::Eof, Place::End).map(|_| ());
        self.tokens.leave(Rule::Start, outcome)?;
        Ok(parsed)
    }

    pub(super) fn expr(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Expr, follow)?;
        let mut out = None;
        let outcome = self.ternary(&mut out);
        self.tokens.leave(Rule::Expr, outcome)?;
        Ok(self.or_missing(out))
    }

    fn ternary(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let condition = self.or(Place::Ternary)?;
        *out = Some(condition);
        if self.tokens.kind() != Kind::Question {
            return Ok(());
        }
        let operator = self.tokens.take()?;
        let then = self.or(Place::TernaryColon)?;
        self.tokens.expect(Place::TernaryColon, Kind::Colon, Place::Expr)?;
        let otherwise = self.expr(Place::End)?;
        *out = Some(self.operation("_?_:_", operator, &[condition, then, otherwise]));
        Ok(())
    }

    fn or(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Or, follow)?;
        let first = self.and(Place::OrLoop)?;
        let mut chain = Chain::default();
        while self.tokens.kind() == Kind::Or {
            let operator = self.tokens.take()?;
            chain.0.push((operator, self.and(Place::OrLoop)?));
        }
        self.tokens.leave(Rule::Or, Ok(()))?;
        Ok(self.balance("_||_", first, &chain))
    }

    fn and(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::And, follow)?;
        let first = self.relation(Place::AndLoop, 0)?;
        let mut chain = Chain::default();
        while self.tokens.kind() == Kind::And {
            let operator = self.tokens.take()?;
            chain.0.push((operator, self.relation(Place::AndLoop, 0)?));
        }
        self.tokens.leave(Rule::And, Ok(()))?;
        Ok(self.balance("_&&_", first, &chain))
    }

    /// Left-associative: the right operand of a relation is read with a precedence that admits no other.
    fn relation(&mut self, follow: Place, precedence: u8) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Relation, follow)?;
        let mut left = self.calc(Place::RelationLoop, 0)?;
        while precedence <= 1 && RELATIONS.contains(self.tokens.kind()) {
            let operator = self.tokens.take()?;
            let right = self.relation(Place::RelationLoop, 2)?;
            left = self.operation(binary(operator.kind), operator, &[left, right]);
        }
        self.tokens.leave(Rule::Relation, Ok(()))?;
        Ok(left)
    }

    fn calc(&mut self, follow: Place, precedence: u8) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Calc, follow)?;
        let mut left = self.unary(Place::CalcLoop)?;
        loop {
            let kind = self.tokens.kind();
            let right_precedence = if PRODUCTS.contains(kind) && precedence <= 2 {
                3
            } else if SUMS.contains(kind) && precedence <= 1 {
                2
            } else {
                break;
            };
            let operator = self.tokens.take()?;
            let right = self.calc(Place::CalcLoop, right_precedence)?;
            left = self.operation(binary(kind), operator, &[left, right]);
        }
        self.tokens.leave(Rule::Calc, Ok(()))?;
        Ok(left)
    }

    fn unary(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Unary, follow)?;
        let mut out = None;
        let outcome = self.signs(&mut out);
        self.tokens.leave(Rule::Unary, outcome)?;
        Ok(self.or_missing(out))
    }

    /// A minus before a number belongs to the literal; any other run of signs is one operator, or none if even.
    fn signs(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        self.tokens.choose(Place::Unary)?;
        let first = self.tokens.current();
        let (count, function) = match first.kind {
            Kind::Not => (self.nots()?, "!_"),
            Kind::Minus => match self.tokens.ahead(1)?.kind {
                Kind::Int | Kind::Float => (0, ""),
                next if FIRST_OF_MEMBER.contains(next) => (self.minuses()?, "-_"),
                _ => return Err(self.tokens.no_alternative(Place::Unary, 1)),
            },
            kind if FIRST_OF_MEMBER.contains(kind) => (0, ""),
            _ => return Err(self.tokens.no_alternative(Place::Unary, 0)),
        };
        let operand = self.member(Place::End)?;
        *out = Some(if count % 2 == 0 { operand } else { self.sign(function, first, operand) });
        Ok(())
    }

    fn nots(&mut self) -> Result<u32, Fault> {
        let mut count = 0_u32;
        while self.tokens.kind() == Kind::Not {
            self.tokens.take()?;
            count = count.saturating_add(1);
            self.tokens.choose_again(Place::Nots)?;
        }
        Ok(count)
    }

    fn minuses(&mut self) -> Result<u32, Fault> {
        let mut count = 0_u32;
        loop {
            self.tokens.take()?;
            count = count.saturating_add(1);
            self.tokens.choose_again(Place::Minuses)?;
            let kind = self.tokens.kind();
            if kind != Kind::Minus {
                return if FIRST_OF_MEMBER.contains(kind) {
                    Ok(count)
                } else {
                    Err(self.tokens.no_alternative(Place::Minuses, 0))
                };
            }
            if !FIRST_OF_MEMBER.contains(self.tokens.ahead(1)?.kind) {
                return Err(self.tokens.no_alternative(Place::Minuses, 1));
            }
        }
    }

    fn member(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Member, follow)?;
        let mut out = self.primary(Place::MemberLoop)?;
        let outcome = self.selections(&mut out);
        self.tokens.leave(Rule::Member, outcome)?;
        Ok(out)
    }

    fn selections(&mut self, out: &mut Parsed) -> Result<(), Fault> {
        loop {
            match self.tokens.kind() {
                Kind::LeftBracket => self.index(out)?,
                Kind::Dot => match self.tokens.ahead(1)?.kind {
                    Kind::Ident if self.tokens.ahead(2)?.kind == Kind::LeftParen => self.member_call(out)?,
                    Kind::Ident | Kind::Question | Kind::EscapedIdent => self.select(out)?,
                    _ => return Err(self.tokens.no_alternative(Place::Selector, 1)),
                },
                _ => return Ok(()),
            }
        }
    }

    fn select(&mut self, out: &mut Parsed) -> Result<(), Fault> {
        let dot = self.tokens.take()?;
        let optional = self.tokens.kind() == Kind::Question;
        if optional {
            self.tokens.take()?;
        }
        let at = self.tokens.current().start;
        let field = self.escaped_ident(Place::MemberLoop)?.unwrap_or_else(|message| {
            self.build.mistake(at, message);
            Box::default()
        });
        let expr = if !optional {
            Expr::Select { operand: out.id, field, test_only: false }
        } else if self.options.optional_syntax {
            let span = Span { start: at, end: self.tokens.last_end() };
            let field = self.build.add(Expr::Literal(Literal::String(field)), span, at);
            Expr::Call { function: "_?._".into(), target: None, args: [out.id, field].into() }
        } else {
            self.build.mistake(dot.start, "unsupported syntax '.?'");
            Expr::Literal(Literal::Null)
        };
        *out = self.raised(expr, dot, &[*out]);
        Ok(())
    }

    fn index(&mut self, out: &mut Parsed) -> Result<(), Fault> {
        let bracket = self.tokens.take()?;
        let mut index = None;
        let mut optional = false;
        let outcome = self.index_body(&mut index, &mut optional);
        let index = self.or_missing(index);
        if optional && !self.options.optional_syntax {
            self.build.mistake(bracket.start, "unsupported syntax '[?'");
        }
        *out = self.operation(if optional { "_[?_]" } else { "_[_]" }, bracket, &[*out, index]);
        outcome
    }

    fn index_body(&mut self, index: &mut Option<Parsed>, optional: &mut bool) -> Result<(), Fault> {
        self.tokens.choose(Place::IndexStart)?;
        if self.tokens.kind() == Kind::Question {
            self.tokens.take()?;
            *optional = true;
        }
        *index = Some(self.expr(Place::IndexEnd)?);
        self.tokens.expect(Place::IndexEnd, Kind::RightBracket, Place::MemberLoop)?;
        Ok(())
    }

    fn member_call(&mut self, out: &mut Parsed) -> Result<(), Fault> {
        self.tokens.take()?;
        let name = self.tokens.take()?;
        let paren = self.tokens.take()?;
        let mut args = Vec::new();
        let outcome = self.arguments(&mut args, Place::MemberArgs, Place::MemberArgsEnd, Place::MemberLoop);
        let name = self.tokens.text(name);
        *out = self.call(name, out.start, paren, Some(*out), &args);
        outcome
    }

    /// Arguments and the closing parenthesis; those that were read before a fault count.
    pub(super) fn arguments(
        &mut self,
        args: &mut Vec<Parsed>,
        start: Place,
        end: Place,
        after: Place,
    ) -> Result<(), Fault> {
        self.tokens.choose(start)?;
        if FIRST_OF_EXPR.contains(self.tokens.kind()) {
            self.tokens.enter(Rule::Args, end)?;
            args.push(self.expr(Place::CommaLoop)?);
            while self.tokens.kind() == Kind::Comma {
                self.tokens.take()?;
                args.push(self.expr(Place::CommaLoop)?);
            }
            self.tokens.leave(Rule::Args, Ok(()))?;
        }
        self.tokens.expect(end, Kind::RightParen, after)?;
        Ok(())
    }

    /// Builds a call, or the expansion of its macro. Member calls count as a level of nesting, global ones do not.
    pub(super) fn call(
        &mut self,
        function: &str,
        start: u32,
        paren: Token,
        target: Option<Parsed>,
        args: &[Parsed],
    ) -> Parsed {
        let parts = target.iter().chain(args);
        let height = parts.map(|part| part.height).max().unwrap_or_default();
        let height = height.saturating_add(u32::from(target.is_some()));
        let span = Span { start, end: self.tokens.last_end() };
        let target = target.map(|target| target.id);
        let args: Box<[ExprId]> = args.iter().map(|arg| arg.id).collect();
        if let Some(id) = self.expand(function, span, paren.start, &Site { target, args: &args }, height) {
            self.build.macro_calls.insert(id, MacroCall { function: function.into(), target, args });
            return Parsed { id, start, height };
        }
        let id = self.build.add(Expr::Call { function: function.into(), target, args }, span, paren.start);
        Parsed { id, start, height }
    }

    fn expand(
        &mut self,
        function: &str,
        span: Span,
        anchor: u32,
        site: &Site<'_>,
        height: u32,
    ) -> Option<ExprId> {
        let fits = |m: &&&super::Macro| {
            m.name == function && m.receiver == site.target.is_some() && m.takes(site.args.len())
        };
        let found = self.options.macros.iter().find(fits)?;
        if height > crate::limits::MAX_RECURSION_DEPTH {
            // Refused at the end of parsing; an expansion may copy its target, which takes as much stack as it is high.
            return None;
        }
        let mut expander = Expander { build: &mut self.build, span, anchor };
        match (found.expand)(&mut expander, site) {
            Ok(expansion) => expansion,
            Err((at, message)) => {
                self.build.mistake(at, message);
                Some(self.build.missing(at))
            }
        }
    }

    /// `-x` and `!x` do not count as a level.
    fn sign(&mut self, function: &str, operator: Token, operand: Parsed) -> Parsed {
        let span = Span { start: operator.start, end: self.tokens.last_end() };
        let expr = Expr::Call { function: function.into(), target: None, args: [operand.id].into() };
        Parsed { id: self.build.add(expr, span, operator.start), start: operator.start, ..operand }
    }

    fn operation(&mut self, function: &str, operator: Token, operands: &[Parsed]) -> Parsed {
        let args = operands.iter().map(|operand| operand.id).collect();
        self.raised(Expr::Call { function: function.into(), target: None, args }, operator, operands)
    }

    /// An expression one level above its parts, placed at a token.
    fn raised(&mut self, expr: Expr, at: Token, parts: &[Parsed]) -> Parsed {
        let start = parts.first().map_or(at.start, |part| part.start);
        let height = parts.iter().map(|part| part.height).max().unwrap_or_default().saturating_add(1);
        let id = self.build.add(expr, Span { start, end: self.tokens.last_end() }, at.start);
        Parsed { id, start, height }
    }

    pub(super) fn or_missing(&mut self, parsed: Option<Parsed>) -> Parsed {
        parsed.unwrap_or_else(|| {
            let start = self.tokens.current().start;
            Parsed { id: self.build.missing(start), start, height: 0 }
        })
    }

    /// A chain of one logical operator as a tree of the least depth, which is how cel-go evaluates it.
    fn balance(&mut self, function: &str, first: Parsed, chain: &Chain) -> Parsed {
        if chain.0.is_empty() {
            return first;
        }
        let height = chain.0.iter().map(|(_, term)| term.height).fold(first.height, u32::max);
        let (term, _) = self.balanced(function, first, &chain.0);
        Parsed { height, ..term }
    }

    fn balanced(&mut self, function: &str, first: Parsed, rest: &[(Token, Parsed)]) -> (Parsed, u32) {
        let middle = rest.len() / 2;
        let (before, after) = rest.split_at_checked(middle).unwrap_or((rest, &[]));
        let Some(((operator, head), after)) = after.split_first() else {
            return (first, self.build.span(first.id).end);
        };
        let (left, _) = self.balanced(function, first, before);
        let (right, end) = self.balanced(function, *head, after);
        let expr = Expr::Call { function: function.into(), target: None, args: [left.id, right.id].into() };
        let id = self.build.add(expr, Span { start: left.start, end }, operator.start);
        (Parsed { id, start: left.start, height: 0 }, end)
    }
}

/// The operators and further terms of a chain.
#[derive(Debug, Default)]
struct Chain(Vec<(Token, Parsed)>);

fn binary(kind: Kind) -> &'static str {
    match kind {
        Kind::Equals => "_==_",
        Kind::NotEquals => "_!=_",
        Kind::In => "@in",
        Kind::Less => "_<_",
        Kind::LessEquals => "_<=_",
        Kind::GreaterEquals => "_>=_",
        Kind::Greater => "_>_",
        Kind::Plus => "_+_",
        Kind::Minus => "_-_",
        Kind::Star => "_*_",
        Kind::Slash => "_/_",
        _ => "_%_",
    }
}
