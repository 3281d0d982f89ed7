//! Recovers from syntax errors in the token stream: reports one error in cel-go's words, then makes the smallest repair that lets
//! parsing continue (drop a token, assume one, or skip to where an enclosing rule can continue), within cel-go's limits. The repairs
//! are those of its parser generator, so that the following messages agree too.

use crate::limits::{
    MAX_RECOVERY_ATTEMPTS, MAX_RECOVERY_LOOKAHEAD, MAX_RECURSION_DEPTH, MAX_REPORTED_ERRORS,
};
use crate::source::Source;

use super::grammar::{Place, RULES, Rule};
use super::lexer::{Lexeme, Lexer};
use super::token::{Kind, Token, TokenSet};

/// A limit was met; nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    TooDeep,
    LookaheadSpent,
    /// The limit was reported as a syntax error.
    Told,
}

/// Why a rule could not continue. Small, because it passes through every frame of a deep recursion; the details are in [`Tokens`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Syntax,
    Stop(Stop),
}

/// The particulars of [`Fault::Syntax`].
#[derive(Clone, Copy, Debug)]
enum Misfit {
    /// The token does not fit, and the places around it would have allowed these.
    Mismatch { token: Token, expected: TokenSet },
    /// No alternative of the rule fits the tokens from the first to the last.
    NoAlternative { first: Token, last: Token },
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl Stop {
    /// Returns the message about the limit, reported beside the syntax errors.
    pub(crate) fn message(self) -> Option<String> {
        match self {
            Self::TooDeep => Some(format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}")),
            Self::LookaheadSpent => {
                Some(format!("error recovery token lookahead limit exceeded: {MAX_RECOVERY_LOOKAHEAD}"))
            }
            Self::Told => None,
        }
    }
}

/// A syntax error and the offset of its place.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) message: String,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Tokens, read on demand so that an early stop also ends the search for bad characters.
#[derive(Debug)]
pub(crate) struct Tokens<'s> {
    source: Source<'s>,
    lexer: Lexer<'s>,
    read: Vec<Token>,
    at: usize,
    pub(crate) errors: Vec<SyntaxError>,
    /// The places behind the rules that are being parsed, outermost first.
    returns: Vec<Place>,
    depths: [u16; RULES],
    /// No message is given before a token fits again.
    recovering: bool,
    recoveries: usize,
    last_error: Option<(usize, Vec<Place>)>,
    misfit: Option<Misfit>,
    /// The grammar position at which the current token was last examined.
    place: Place,
    /// Ranges of invalid tokens; messages that show the text between two tokens leave them out.
    skipped: Vec<(u32, u32)>,
}

impl<'s> Tokens<'s> {
    pub(crate) fn new(source: Source<'s>) -> Self {
        Self {
            source,
            lexer: Lexer::new(source.text()),
            read: Vec::with_capacity(32),
            at: 0,
            errors: Vec::new(),
            returns: Vec::with_capacity(64),
            depths: [0; RULES],
            recovering: false,
            recoveries: 0,
            last_error: None,
            misfit: None,
            place: Place::Eof,
            skipped: Vec::new(),
        }
    }

    /// Reads the first token.
    pub(crate) fn begin(&mut self) -> Result<(), Stop> {
        self.fetch(0)
    }

    /// The token to be parsed next.
    pub(crate) fn current(&self) -> Token {
        self.read.get(self.at).copied().unwrap_or_else(|| self.end())
    }

    pub(crate) fn kind(&self) -> Kind {
        self.current().kind
    }

    /// A token further ahead: `ahead(1)` follows the current one.
    pub(crate) fn ahead(&mut self, n: usize) -> Result<Token, Stop> {
        let index = self.at.saturating_add(n);
        self.fetch(index)?;
        Ok(self.read.get(index).copied().unwrap_or_else(|| self.end()))
    }

    /// The end of the last token that was consumed.
    pub(crate) fn last_end(&self) -> u32 {
        self.at.checked_sub(1).and_then(|last| self.read.get(last)).map_or(0, |token| token.end)
    }

    pub(crate) fn text(&self, token: Token) -> &'s str {
        self.slice(token.start, token.end)
    }

    fn slice(&self, start: u32, end: u32) -> &'s str {
        self.source.text().get(start as usize..end as usize).unwrap_or_default()
    }

    /// Consumes the current token, whatever it is; the end of the text stays.
    pub(crate) fn take(&mut self) -> Result<Token, Stop> {
        let token = self.current();
        self.recovering = false;
        self.last_error = None;
        self.advance()?;
        Ok(token)
    }

    /// Consumes a token of a kind; repairs the text if there is another one.
    ///
    /// `after` is the position after the token: if the current token may follow there, the missing one is assumed.
    pub(crate) fn expect(&mut self, place: Place, kind: Kind, after: Place) -> Result<Token, Fault> {
        if self.kind() == kind {
            return Ok(self.take()?);
        }
        self.place = place;
        self.attempt()?;
        if self.drop_one(place)? {
            let token = self.current();
            self.advance()?;
            return Ok(token);
        }
        let token = self.current();
        if self.expected(after).contains(token.kind) {
            let expected = self.expected(place).display();
            let shown = self.display(token);
            self.complain(token, || format!("missing {expected} at {shown}"))?;
            return Ok(Token { kind, start: token.start, end: token.start });
        }
        Err(self.mismatch(place))
    }

    /// Looks, before a choice, whether any of its alternatives fits; if not, drops a token or gives up the rule.
    pub(crate) fn choose(&mut self, place: Place) -> Result<(), Fault> {
        self.place = place;
        if self.recovering || place.may_end() || place.next().contains(self.kind()) || self.drop_one(place)? {
            return Ok(());
        }
        Err(self.mismatch(place))
    }

    /// As [`Self::choose`], after an iteration of a loop: skips what cannot continue it.
    pub(crate) fn choose_again(&mut self, place: Place) -> Result<(), Stop> {
        self.place = place;
        if self.recovering || place.next().contains(self.kind()) {
            return Ok(());
        }
        self.report_unwanted(place)?;
        let resume = self.expected(place).or(self.resume_set());
        self.skip_to(resume, None)
    }

    pub(crate) fn enter(&mut self, rule: Rule, follow: Place) -> Result<(), Stop> {
        self.returns.push(follow);
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth = depth.saturating_add(1);
            if u32::from(*depth) > MAX_RECURSION_DEPTH {
                return Err(Stop::TooDeep);
            }
        }
        Ok(())
    }

    /// Ends a rule: reports its error and skips to where the enclosing rule can continue.
    pub(crate) fn leave(&mut self, rule: Rule, outcome: Result<(), Fault>) -> Result<(), Stop> {
        if let Err(fault) = outcome {
            self.report(fault)?;
            self.recover(self.place)?;
        }
        self.returns.pop();
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth = depth.saturating_sub(1);
        }
        Ok(())
    }

    /// No alternative fits the tokens from the current one to the one `n` tokens ahead.
    pub(crate) fn no_alternative(&mut self, place: Place, n: usize) -> Fault {
        self.place = place;
        match self.ahead(n) {
            Ok(last) => {
                self.misfit = Some(Misfit::NoAlternative { first: self.current(), last });
                Fault::Syntax
            }
            Err(stop) => Fault::Stop(stop),
        }
    }

    fn mismatch(&mut self, place: Place) -> Fault {
        self.misfit = Some(Misfit::Mismatch { token: self.current(), expected: self.expected(place) });
        Fault::Syntax
    }

    fn end(&self) -> Token {
        let end = u32::try_from(self.source.text().len()).unwrap_or(u32::MAX);
        Token { kind: Kind::Eof, start: end, end }
    }

    fn fetch(&mut self, index: usize) -> Result<(), Stop> {
        while self.read.len() <= index && self.read.last().is_none_or(|token| token.kind != Kind::Eof) {
            match self.lexer.next() {
                Lexeme::Token(token) => self.read.push(token),
                Lexeme::Unrecognised { start, end } => {
                    self.skipped.push((start, end));
                    let text = self.slice(start, end);
                    self.error(start, end, format!("token recognition error at: {}", quote(text)))?;
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), Stop> {
        if self.kind() != Kind::Eof {
            self.at = self.at.saturating_add(1);
            self.fetch(self.at)?;
        }
        Ok(())
    }

    /// Returns the tokens that may follow at a position, including those of enclosing rules.
    fn expected(&self, place: Place) -> TokenSet {
        let mut set = place.next();
        let mut open = place.may_end();
        for place in self.returns.iter().rev() {
            if !open {
                return set;
            }
            set = set.or(place.next());
            open = place.may_end();
        }
        if open { set.or(TokenSet::of(&[Kind::Eof])) } else { set }
    }

    /// What any rule around the current place could continue with.
    fn resume_set(&self) -> TokenSet {
        self.returns.iter().fold(TokenSet::EMPTY, |set, place| set.or(place.next()))
    }

    /// Drops the current token if the next one fits, and reports that.
    fn drop_one(&mut self, place: Place) -> Result<bool, Stop> {
        let next = self.ahead(1)?;
        if !self.expected(place).contains(next.kind) {
            return Ok(false);
        }
        self.report_unwanted(place)?;
        self.advance()?;
        self.recovering = false;
        self.last_error = None;
        Ok(true)
    }

    fn attempt(&mut self) -> Result<(), Stop> {
        if self.recoveries == MAX_RECOVERY_ATTEMPTS {
            let token = self.current();
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERY_ATTEMPTS}");
            self.error(token.start, token.end, message)?;
            return Err(Stop::Told);
        }
        self.recoveries = self.recoveries.saturating_add(1);
        Ok(())
    }

    fn recover(&mut self, place: Place) -> Result<(), Stop> {
        self.attempt()?;
        let mut budget = MAX_RECOVERY_LOOKAHEAD;
        // A second fault at one token and one place means that nothing was skipped: skip one token at least.
        let mut places = match self.last_error.take() {
            Some((at, places)) if at == self.at => {
                if places.contains(&place) {
                    self.skip_one(Some(&mut budget))?;
                }
                places
            }
            Some((_, places)) => places,
            None => Vec::new(),
        };
        places.push(place);
        self.last_error = Some((self.at, places));
        self.skip_to(self.resume_set(), Some(&mut budget))
    }

    fn skip_to(&mut self, set: TokenSet, mut budget: Option<&mut usize>) -> Result<(), Stop> {
        while self.kind() != Kind::Eof && !set.contains(self.kind()) {
            self.skip_one(budget.as_deref_mut())?;
        }
        Ok(())
    }

    fn skip_one(&mut self, budget: Option<&mut usize>) -> Result<(), Stop> {
        if let Some(budget) = budget {
            *budget = budget.checked_sub(1).ok_or(Stop::LookaheadSpent)?;
        }
        self.advance()
    }

    fn report(&mut self, fault: Fault) -> Result<(), Stop> {
        if let Fault::Stop(stop) = fault {
            return Err(stop);
        }
        match self.misfit.take() {
            None => Ok(()),
            Some(Misfit::Mismatch { token, expected }) => {
                let shown = self.display(token);
                self.complain(token, || format!("mismatched input {shown} expecting {}", expected.display()))
            }
            Some(Misfit::NoAlternative { first, last }) => {
                let message = self.no_alternative_message(first, last);
                self.complain(last, || message)
            }
        }
    }

    /// A reserved word after a dot is reported as such.
    fn no_alternative_message(&self, first: Token, last: Token) -> String {
        if first.kind == Kind::Eof {
            return "no viable alternative at input '<EOF>'".to_owned();
        }
        let mut input = String::new();
        let mut from = first.start;
        for (start, end) in
            self.skipped.iter().filter(|(start, end)| *start >= first.start && *end <= last.end)
        {
            input.push_str(self.slice(from, *start));
            from = *end;
        }
        input.push_str(self.slice(from, last.end));
        for word in ["true", "false", "null"] {
            if input.strip_suffix(word).is_some_and(|before| before.chars().count() == 1) {
                return format!("mismatched input '{word}' expecting IDENTIFIER");
            }
        }
        format!("no viable alternative at input {}", quote(&input))
    }

    fn report_unwanted(&mut self, place: Place) -> Result<(), Stop> {
        let token = self.current();
        let expected = self.expected(place);
        let shown = self.display(token);
        self.complain(token, || format!("extraneous input {shown} expecting {}", expected.display()))
    }

    fn complain(&mut self, token: Token, message: impl FnOnce() -> String) -> Result<(), Stop> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        self.error(token.start, token.end, message())
    }

    fn error(&mut self, start: u32, end: u32, message: String) -> Result<(), Stop> {
        if self.errors.len() < MAX_REPORTED_ERRORS {
            self.errors.push(SyntaxError { message, start, end });
            return Ok(());
        }
        let message = format!("More than {MAX_REPORTED_ERRORS} syntax errors");
        self.errors.push(SyntaxError { message, start, end });
        Err(Stop::Told)
    }

    fn display(&self, token: Token) -> String {
        if token.kind == Kind::Eof { "'<EOF>'".to_owned() } else { quote(self.text(token)) }
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
