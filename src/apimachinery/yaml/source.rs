//! Reads the events of a YAML text and assembles them into documents: all at once, or one after the other.

use granit_parser::{Event, Parser, StrInput};

use super::ahead::{Ahead, ListOf};
use super::builder::Builder;
use super::events::{next, next_with_span, parser, position};
use super::layout::{Layout, Reader};
use super::tree::{Tree, YamlError};

/// All documents of `text`; an empty one is null.
///
/// # Errors
/// The first mistake, or more than is taken: in depth, in number, or in what the values weigh.
pub fn parse(text: &str) -> Result<Vec<Tree>, YamlError> {
    build(text, true)
}

/// The same for those who do not ask where things stand: each tree has one position, its own.
///
/// # Errors
/// As [`parse`].
pub fn parse_values(text: &str) -> Result<Vec<Tree>, YamlError> {
    build(text, false)
}

/// The first document alone, as Go's readers of one document do: nobody reads what is behind it, which may be anything.
///
/// # Errors
/// As [`parse`], of the first document.
///
/// ```
/// # use admit_apimachinery::yaml::parse_first;
/// assert_eq!(parse_first("a: 1\n---\nb: [").unwrap().unwrap().value["a"], 1);
/// assert!(parse_first("").unwrap().is_none() && parse_first("a: [\n").is_err());
/// ```
pub fn parse_first(text: &str) -> Result<Option<Tree>, YamlError> {
    let mut source = Source::new(text, false);
    while let Some((event, here)) = next(&mut source.parser)? {
        let over = matches!(event, Event::DocumentEnd);
        source.builder.event(event, here)?;
        if over {
            break;
        }
    }
    Ok(source.builder.trees.into_iter().next())
}

fn build(text: &str, placed: bool) -> Result<Vec<Tree>, YamlError> {
    let mut source = Source::new(text, placed);
    while source.step()? {}
    Ok(source.builder.trees)
}

/// All documents of `text` as [`parse`] reads them, and where everything stands, in one go.
///
/// # Errors
/// As [`parse`].
///
/// ```
/// let (trees, layout) = admit_apimachinery::yaml::parse_placed("a: 1\n").unwrap();
/// assert_eq!((trees[0].value["a"].as_i64(), layout.ids().count()), (Some(1), 2));
/// ```
pub fn parse_placed(text: &str) -> Result<(Vec<Tree>, Layout), YamlError> {
    let mut parser = parser(text);
    let (mut builder, mut reader) = (Builder::new(text.len(), true), Reader::new(text));
    while let Some((event, span)) = next_with_span(&mut parser)? {
        reader.take(&event, &span);
        builder.event(event, position(&span.start))?;
    }
    let layout = Layout { weight: builder.spent(), ..reader.finish() };
    Ok((builder.trees, layout))
}

/// The documents of a text one after the other, an empty one null, and the items of lists, and of lists within them, before the
/// list that has them no more.
/// The bounds hold for each of these by itself: whoever lets one go before asking for the next has memory for any number of
/// them. After a mistake there are no more.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<Piece, YamlError>> + use<'_> {
    Trees { text, source: Source::new(text, true), ahead: None, document: 0, lists: Vec::new(), over: false }
}

struct Trees<'t> {
    text: &'t str,
    source: Source<'t>,
    /// Made where the first list is met.
    ahead: Option<Ahead<'t>>,
    /// Documents that have begun.
    document: usize,
    /// Those whose items are being read, each within the one before.
    lists: Vec<ListOf>,
    over: bool,
}

/// A document, or an item of a list.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Itself.
    pub tree: Tree,
    /// Of an item, of what list.
    pub list: Option<ListOf>,
}

impl<'t> Trees<'t> {
    fn piece(&mut self) -> Result<Option<Piece>, YamlError> {
        while let Some((event, here)) = next(&mut self.source.parser)? {
            if matches!(event, Event::DocumentStart(..)) {
                self.document = self.document.saturating_add(1);
            }
            let list = match event {
                Event::SequenceStart(_, 0, _) if self.source.builder.opens_items() => {
                    self.ahead.get_or_insert_with(|| Ahead::new(self.text)).list(self.document, here)?
                }
                _ => None,
            };
            self.source.builder.event(event, here)?;
            if let Some(list) = list {
                self.source.builder.let_items_go();
                self.lists.push(list);
            }
            if let Some(tree) = self.source.builder.trees.pop() {
                self.lists.truncate(self.source.builder.renew());
                return Ok(Some(Piece { tree, list: self.lists.last().cloned() }));
            }
        }
        Ok(None)
    }
}

impl Iterator for Trees<'_> {
    type Item = Result<Piece, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let piece = self.piece().transpose();
        self.over = !matches!(piece, Some(Ok(_)));
        piece
    }
}

/// The events of a text, and what has been made of them.
pub(super) struct Source<'t> {
    parser: Parser<'t, StrInput<'t>>,
    pub(super) builder: Builder,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str, placed: bool) -> Self {
        Self { parser: parser(text), builder: Builder::new(text.len(), placed) }
    }

    /// Takes one event; whether there was one, and the text is not over.
    pub(super) fn step(&mut self) -> Result<bool, YamlError> {
        let Some((event, here)) = next(&mut self.parser)? else { return Ok(false) };
        self.builder.event(event, here)?;
        Ok(true)
    }
}
