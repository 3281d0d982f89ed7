//! Parses the leaves of the grammar: names, calls, parentheses, lists, maps, messages and literals.

use crate::names::is_reserved;
use crate::source::Span;

use super::ast::{Entry, Expr, Literal};
use super::grammar::{FIRST_OF_FIELD, FIRST_OF_OPTIONAL_EXPR, LITERALS, Place, Rule};
use super::literal;
use super::parser::{Parsed, Parser};
use super::recovery::{Fault, Stop};
use super::token::{Kind, Token};

/// What a name begins.
enum Named {
    Ident,
    Call,
    Message,
}

/// The parsed list of entries.
#[derive(Default)]
struct Entries {
    entries: Vec<Entry>,
    height: u32,
}

impl Parser<'_, '_> {
    pub(super) fn primary(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Primary, follow)?;
        let mut out = None;
        let outcome = self.leaf(&mut out);
        self.tokens.leave(Rule::Primary, outcome)?;
        Ok(self.or_missing(out))
    }

    fn leaf(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        self.tokens.choose(Place::Primary)?;
        match self.tokens.kind() {
            Kind::Dot | Kind::Ident => match self.named()? {
                Named::Ident => self.ident(out),
                Named::Call => self.global_call(out),
                Named::Message => self.message(out),
            },
            Kind::LeftParen => self.nested(out),
            Kind::LeftBracket => self.list(out),
            Kind::LeftBrace => self.map(out),
            kind if kind == Kind::Minus || LITERALS.contains(kind) => {
                *out = Some(self.literal(Place::End)?);
                Ok(())
            }
            _ => Err(self.tokens.no_alternative(Place::Primary, 0)),
        }
    }

    /// Looks past the names and dots of a qualified name for the brace of a message.
    fn named(&mut self) -> Result<Named, Fault> {
        let mut next = 1_usize;
        if self.tokens.kind() == Kind::Dot {
            if self.tokens.ahead(1)?.kind != Kind::Ident {
                return Err(self.tokens.no_alternative(Place::Primary, 1));
            }
            next = 2;
        }
        if self.tokens.ahead(next)?.kind == Kind::LeftParen {
            return Ok(Named::Call);
        }
        loop {
            match self.tokens.ahead(next)?.kind {
                Kind::LeftBrace => return Ok(Named::Message),
                Kind::Dot if self.tokens.ahead(next.saturating_add(1))?.kind == Kind::Ident => {
                    next = next.saturating_add(2);
                }
                _ => return Ok(Named::Ident),
            }
        }
    }

    fn leading_dot(&mut self) -> Result<Option<Token>, Stop> {
        if self.tokens.kind() == Kind::Dot { self.tokens.take().map(Some) } else { Ok(None) }
    }

    /// Parses a name, with the dot that makes it absolute; reports a reserved one and returns None.
    fn simple_name(&mut self, dot: Option<Token>, name: Token) -> Option<Box<str>> {
        let text = self.tokens.text(name);
        if is_reserved(text) {
            let at = dot.map_or(name.start, |dot| dot.start);
            self.build.mistake(at, format!("reserved identifier: {text}"));
            return None;
        }
        Some(if dot.is_some() { format!(".{text}").into() } else { text.into() })
    }

    fn ident(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let dot = self.leading_dot()?;
        let token = self.tokens.take()?;
        let start = dot.map_or(token.start, |dot| dot.start);
        let id = match self.simple_name(dot, token) {
            Some(name) => self.build.add(Expr::Ident(name), Span { start, end: token.end }, token.start),
            None => self.build.missing(start),
        };
        *out = Some(Parsed { id, start, height: 0 });
        Ok(())
    }

    fn global_call(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let dot = self.leading_dot()?;
        let token = self.tokens.take()?;
        let start = dot.map_or(token.start, |dot| dot.start);
        let paren = self.tokens.take()?;
        let name = self.simple_name(dot, token);
        // Errors in the arguments are not reported if the function name is rejected.
        let mistakes = self.build.mistakes.len();
        let mut args = Vec::new();
        let outcome = self.arguments(&mut args, Place::CallArgs, Place::CallArgsEnd, Place::End);
        let parsed = match name {
            None => {
                self.build.mistakes.truncate(mistakes);
                Parsed { id: self.build.missing(start), start, height: 0 }
            }
            Some(name) => self.call(&name, start, paren, None, &args),
        };
        *out = Some(parsed);
        outcome
    }

    fn nested(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let paren = self.tokens.take()?;
        let inner = self.expr(Place::NestedEnd)?;
        *out = Some(inner);
        self.tokens.expect(Place::NestedEnd, Kind::RightParen, Place::End)?;
        *out = Some(Parsed { start: paren.start, ..inner });
        Ok(())
    }

    fn list(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let bracket = self.tokens.take()?;
        let mut items = Vec::new();
        let outcome = self.list_body(&mut items);
        let height = items.iter().map(|(item, _)| item.height).max().unwrap_or_default();
        let elements = items.iter().map(|(item, _)| item.id).collect();
        let optional =
            (0_u32..).zip(&items).filter(|(_, (_, optional))| *optional).map(|(index, _)| index).collect();
        let span = Span { start: bracket.start, end: self.tokens.last_end() };
        let id = self.build.add(Expr::List { elements, optional }, span, bracket.start);
        *out = Some(Parsed { id, start: bracket.start, height });
        outcome
    }

    fn list_body(&mut self, items: &mut Vec<(Parsed, bool)>) -> Result<(), Fault> {
        self.tokens.choose(Place::ListStart)?;
        if FIRST_OF_OPTIONAL_EXPR.contains(self.tokens.kind()) {
            self.tokens.enter(Rule::ListItems, Place::ListComma)?;
            loop {
                let (item, question) = self.optional_expr(Place::CommaLoop)?;
                let allowed = self.optional_allowed(question.map(|token| token.start));
                items.push((item, question.is_some() && allowed));
                // A comma may end the list, too.
                if self.tokens.kind() != Kind::Comma
                    || !FIRST_OF_OPTIONAL_EXPR.contains(self.tokens.ahead(1)?.kind)
                {
                    break;
                }
                self.tokens.take()?;
            }
            self.tokens.leave(Rule::ListItems, Ok(()))?;
        }
        self.close(Place::ListComma, Place::ListEnd, Kind::RightBracket)
    }

    /// An optional comma and the end of an aggregate.
    fn close(&mut self, comma: Place, end: Place, kind: Kind) -> Result<(), Fault> {
        self.tokens.choose(comma)?;
        if self.tokens.kind() == Kind::Comma {
            self.tokens.take()?;
        }
        self.tokens.expect(end, kind, Place::End)?;
        Ok(())
    }

    fn optional_allowed(&mut self, at: Option<u32>) -> bool {
        if let (Some(at), false) = (at, self.options.optional_syntax) {
            self.build.mistake(at, "unsupported syntax '?'");
            return false;
        }
        true
    }

    /// An expression, and the question mark before it.
    fn optional_expr(&mut self, follow: Place) -> Result<(Parsed, Option<Token>), Stop> {
        self.tokens.enter(Rule::OptionalExpr, follow)?;
        let question = if self.tokens.kind() == Kind::Question { Some(self.tokens.take()?) } else { None };
        let parsed = self.expr(Place::End)?;
        self.tokens.leave(Rule::OptionalExpr, Ok(()))?;
        Ok((parsed, question))
    }

    fn map(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let brace = self.tokens.take()?;
        let mut map = Entries::default();
        let outcome = self.map_body(&mut map);
        let span = Span { start: brace.start, end: self.tokens.last_end() };
        let id = self.build.add(Expr::Map(map.entries.into()), span, brace.start);
        *out = Some(Parsed { id, start: brace.start, height: map.height });
        outcome
    }

    fn map_body(&mut self, map: &mut Entries) -> Result<(), Fault> {
        self.tokens.choose(Place::MapStart)?;
        if FIRST_OF_OPTIONAL_EXPR.contains(self.tokens.kind()) {
            self.tokens.enter(Rule::MapEntries, Place::MapComma)?;
            let outcome = self.map_entries(map);
            self.tokens.leave(Rule::MapEntries, outcome)?;
        }
        self.close(Place::MapComma, Place::MapEnd, Kind::RightBrace)
    }

    fn map_entries(&mut self, map: &mut Entries) -> Result<(), Fault> {
        let mut colon = Place::FirstEntryColon;
        loop {
            let mistakes = self.build.mistakes.len();
            let (key, question) = self.optional_expr(colon)?;
            if let Err(fault) = self.tokens.expect(colon, Kind::Colon, Place::Expr) {
                // An entry without a value is not looked at.
                self.build.mistakes.truncate(mistakes);
                return Err(fault);
            }
            let value = self.expr(Place::CommaLoop)?;
            if !self.optional_allowed(question.map(|token| token.start)) {
                self.build.mistakes.truncate(mistakes.saturating_add(1));
            }
            map.height = map.height.max(key.height).max(value.height);
            map.entries.push(Entry { key: key.id, value: value.id, optional: question.is_some() });
            colon = Place::NextEntryColon;
            if self.tokens.kind() != Kind::Comma
                || !FIRST_OF_OPTIONAL_EXPR.contains(self.tokens.ahead(1)?.kind)
            {
                return Ok(());
            }
            self.tokens.take()?;
        }
    }

    fn message(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let start = self.tokens.current().start;
        let mut name = String::new();
        while self.tokens.kind() != Kind::LeftBrace {
            let token = self.tokens.take()?;
            name.push_str(self.tokens.text(token));
        }
        let brace = self.tokens.take()?;
        let mut fields = Entries::default();
        let outcome = self.message_body(&mut fields);
        let span = Span { start, end: self.tokens.last_end() };
        let expr = Expr::Struct { name: name.into(), entries: fields.entries.into() };
        *out = Some(Parsed { id: self.build.add(expr, span, brace.start), start, height: fields.height });
        outcome
    }

    fn message_body(&mut self, fields: &mut Entries) -> Result<(), Fault> {
        self.tokens.choose(Place::FieldsStart)?;
        if FIRST_OF_FIELD.contains(self.tokens.kind()) {
            self.tokens.enter(Rule::Fields, Place::FieldsComma)?;
            let outcome = self.fields(fields);
            self.tokens.leave(Rule::Fields, outcome)?;
        }
        self.close(Place::FieldsComma, Place::FieldsEnd, Kind::RightBrace)
    }

    fn fields(&mut self, fields: &mut Entries) -> Result<(), Fault> {
        let start = self.tokens.current().start;
        let mut place = Place::FirstFieldColon;
        loop {
            let at = self.tokens.current().start;
            let (name, question) = self.field(place)?;
            let colon = self.tokens.expect(place, Kind::Colon, Place::Expr)?;
            let mistakes = self.build.mistakes.len();
            let value = self.expr(Place::CommaLoop)?;
            if question.is_some() && !self.options.optional_syntax {
                self.build.mistakes.truncate(mistakes);
                self.build.mistake(at, "unsupported syntax '?'");
            } else if let Err(message) = &name {
                self.build.mistakes.truncate(mistakes);
                self.build.mistake(start, *message);
            }
            fields.height = fields.height.max(value.height);
            let span = Span { start: at, end: colon.start };
            let key = Expr::Literal(Literal::String(name.unwrap_or_default()));
            let key = self.build.add(key, span, colon.start);
            fields.entries.push(Entry { key, value: value.id, optional: question.is_some() });
            place = Place::NextFieldColon;
            if self.tokens.kind() != Kind::Comma || !FIRST_OF_FIELD.contains(self.tokens.ahead(1)?.kind) {
                return Ok(());
            }
            self.tokens.take()?;
        }
    }

    /// A field's name and the question mark before it.
    fn field(&mut self, follow: Place) -> Result<(FieldName, Option<Token>), Stop> {
        self.tokens.enter(Rule::Field, follow)?;
        let question = if self.tokens.kind() == Kind::Question { Some(self.tokens.take()?) } else { None };
        let name = self.escaped_ident(Place::End)?;
        self.tokens.leave(Rule::Field, Ok(()))?;
        Ok((name, question))
    }

    /// Parses the name of a field, or returns why it is invalid.
    pub(super) fn escaped_ident(&mut self, follow: Place) -> Result<FieldName, Stop> {
        self.tokens.enter(Rule::EscapedIdent, follow)?;
        let mut out = Err("unsupported ident kind");
        let outcome = self.field_name(&mut out);
        self.tokens.leave(Rule::EscapedIdent, outcome)?;
        Ok(out)
    }

    fn field_name(&mut self, out: &mut FieldName) -> Result<(), Fault> {
        self.tokens.choose(Place::EscapedIdent)?;
        match self.tokens.kind() {
            Kind::Ident => {
                let token = self.tokens.take()?;
                *out = Ok(self.tokens.text(token).into());
            }
            Kind::EscapedIdent => {
                let token = self.tokens.take()?;
                *out = Err("unsupported syntax: '`'");
                if self.options.escaped_identifiers {
                    *out = Ok(self.tokens.text(token).trim_matches('`').into());
                }
            }
            _ => return Err(self.tokens.no_alternative(Place::EscapedIdent, 0)),
        }
        Ok(())
    }

    fn literal(&mut self, follow: Place) -> Result<Parsed, Stop> {
        self.tokens.enter(Rule::Literal, follow)?;
        let mut out = None;
        let outcome = self.constant(&mut out);
        self.tokens.leave(Rule::Literal, outcome)?;
        Ok(self.or_missing(out))
    }

    fn constant(&mut self, out: &mut Option<Parsed>) -> Result<(), Fault> {
        let first = self.tokens.current();
        let negative = first.kind == Kind::Minus;
        if negative {
            if !matches!(self.tokens.ahead(1)?.kind, Kind::Int | Kind::Float) {
                return Err(self.tokens.no_alternative(Place::Primary, 1));
            }
            self.tokens.take()?;
        }
        let token = self.tokens.take()?;
        let text = self.tokens.text(token);
        let signed = if negative { format!("-{text}") } else { String::new() };
        let number = if negative { signed.as_str() } else { text };
        let value = match token.kind {
            Kind::Int => literal::int(number),
            Kind::Float => literal::double(number),
            Kind::Uint => literal::uint(text),
            Kind::String => literal::string(text),
            Kind::Bytes => literal::bytes(text),
            Kind::True => Ok(Literal::Bool(true)),
            Kind::False => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        let value = value.unwrap_or_else(|message| {
            self.build.mistake(first.start, message);
            Literal::Null
        });
        let span = Span { start: first.start, end: token.end };
        let id = self.build.add(Expr::Literal(value), span, first.start);
        *out = Some(Parsed { id, start: first.start, height: 0 });
        Ok(())
    }
}

/// The name of a field, or why it is invalid.
pub(super) type FieldName = Result<Box<str>, &'static str>;
