//! Reads the events of a YAML text and assembles them into documents: all at once, or one after the other.

use granit_parser::{Event, Parser, StrInput};

use super::ahead::{Ahead, ListOf};
use super::builder::Builder;
use super::events::{next, next_with_span, parser, position};
use super::layout::{Layout, Reader};
use super::tree::{Tree, YamlError};

/// Parses all documents of `text`; an empty document is null.
///
/// # Errors
/// The first error, or when a limit is exceeded: of depth, number or memory.
pub fn parse(text: &str) -> Result<Vec<Tree>, YamlError> {
    build(text, true)
}

/// Does the same without positions: each tree has only the position of its root.
///
/// # Errors
/// As [`parse`].
pub fn parse_values(text: &str) -> Result<Vec<Tree>, YamlError> {
    build(text, false)
}

/// Parses only the first document, as Go's readers of one document do: the text after it may be anything.
///
/// # Errors
/// As [`parse`], for the first document.
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

/// Parses all documents of `text` as [`parse`], and their layout, in one pass.
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

/// Returns the documents of a text one after the other (an empty one is null), and the items of lists, also of nested ones, before
/// the list itself, which then has no items.
/// The limits apply to each of these separately: a caller that drops one before the next can process any number of
/// them. The iterator ends after an error.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<Piece, YamlError>> + use<'_> {
    Trees { text, source: Source::new(text, true), ahead: None, document: 0, lists: Vec::new(), over: false }
}

struct Trees<'t> {
    text: &'t str,
    source: Source<'t>,
    /// Created at the first list.
    ahead: Option<Ahead<'t>>,
    /// The number of documents that have begun.
    document: usize,
    /// The lists whose items are being read, each within the one before.
    lists: Vec<ListOf>,
    over: bool,
}

/// A document, or an item of a list.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The document or item itself.
    pub tree: Tree,
    /// For an item, the type of its list.
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

/// The events of a text, and the documents built so far.
pub(super) struct Source<'t> {
    parser: Parser<'t, StrInput<'t>>,
    pub(super) builder: Builder,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str, placed: bool) -> Self {
        Self { parser: parser(text), builder: Builder::new(text.len(), placed) }
    }

    /// Processes one event; false at the end of the text.
    pub(super) fn step(&mut self) -> Result<bool, YamlError> {
        let Some((event, here)) = next(&mut self.parser)? else { return Ok(false) };
        self.builder.event(event, here)?;
        Ok(true)
    }
}
