//! Records where every key and every value of a text begins and ends, for editors, which look up the node at a position, and
//! the position of a node.

use std::ops::Range;

use granit_parser::{Event, ScalarStyle, Span};

use super::events::{next_with_span, parser};
use super::tree::YamlError;
use super::written::Style;

/// The most open collections, as when parsing documents.
const MAX_DEPTH: usize = 250;
/// The most nodes of a text.
const MAX_SPOTS: usize = 1_000_000;

/// A node of a [`Layout`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SpotId(pub(super) u32);

/// The step from a node to one in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// A document of the text, counted from zero.
    Document(usize),
    /// The value of a key of a map.
    Key(Box<str>),
    /// An item of a list, counted from zero.
    Item(usize),
}

/// A value with its key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spot {
    /// The parent node; None for a document.
    pub parent: Option<SpotId>,
    /// The step from the parent.
    pub step: Step,
    /// The bytes of its key; empty if it has none.
    pub key: Range<usize>,
    /// The bytes of its value.
    pub value: Range<usize>,
    /// How it is written; None for maps, lists and aliases.
    pub style: Option<Style>,
    /// The index of the first node after it and its descendants.
    pub(super) next: u32,
}

/// The nodes of a text with their positions, in the order of the text; each node precedes its descendants.
///
/// ```
/// use admit_apimachinery::yaml::{Layout, Step};
///
/// let text = "kind: A\nspec:\n  rule: 'a + b'\n";
/// let layout = Layout::read(text);
/// let root = layout.documents().next().unwrap();
/// let rule = layout.find(root, &["spec", "rule"]).unwrap();
/// let spot = layout.spot(rule).unwrap();
/// assert_eq!((&text[spot.key.clone()], &text[spot.value.clone()]), ("rule", "'a + b'"));
/// assert_eq!(layout.at(text.find('b').unwrap()), Some(rule));
/// assert_eq!(layout.path(rule), [&Step::Document(0), &Step::Key("spec".into()), &Step::Key("rule".into())]);
/// assert!(layout.children(root).eq(layout.find(root, &["kind"]).into_iter().chain(layout.find(root, &["spec"]))));
/// assert!(layout.error().is_none() && layout.ids().count() == 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub(super) spots: Vec<Spot>,
    pub(super) error: Option<YamlError>,
    /// Whether nodes refer to others: anchors, aliases, or merge keys.
    pub(super) shares: bool,
    /// An upper limit for the memory of the text's values, if it was computed.
    pub(super) weight: usize,
}

/// A collection that has not ended.
struct Open {
    id: SpotId,
    /// In a map: the key whose value comes next.
    key: Option<(Box<str>, Range<usize>)>,
    /// In a list: the index of the next item.
    item: Option<usize>,
    /// Whether it is a key itself: such entries cannot be named.
    is_key: bool,
}

impl Layout {
    /// Reads a text; if it is not valid YAML, only the part before the error.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut reader = Reader::new(text);
        let mut parser = parser(text);
        loop {
            match next_with_span(&mut parser) {
                Ok(Some((event, span))) => reader.take(&event, &span),
                Ok(None) => break,
                Err(error) => {
                    reader.layout.error.get_or_insert(error);
                    break;
                }
            }
        }
        reader.finish()
    }

    /// Returns why the text was not read completely.
    #[must_use]
    pub const fn error(&self) -> Option<&YamlError> {
        self.error.as_ref()
    }

    /// Returns a node.
    #[must_use]
    pub fn spot(&self, id: SpotId) -> Option<&Spot> {
        self.spots.get(id.0 as usize)
    }

    /// Returns all nodes in the order of the text.
    pub fn ids(&self) -> impl Iterator<Item = SpotId> + use<> {
        (0..self.end()).map(SpotId)
    }

    /// Returns the roots of the documents.
    pub fn documents(&self) -> impl Iterator<Item = SpotId> + '_ {
        self.following(0, self.end())
    }

    /// Returns the direct children of a map or a list.
    pub fn children(&self, id: SpotId) -> impl Iterator<Item = SpotId> + '_ {
        let end = self.spot(id).map_or(0, |spot| spot.next);
        self.following(id.0.saturating_add(1), end)
    }

    fn following(&self, first: u32, end: u32) -> impl Iterator<Item = SpotId> + '_ {
        let next = |id: &SpotId| self.spot(*id).map(|spot| SpotId(spot.next.max(id.0.saturating_add(1))));
        std::iter::successors(Some(SpotId(first)), next).take_while(move |id| id.0 < end)
    }

    /// Finds a node by keys and by indexes of items.
    #[must_use]
    pub fn find(&self, from: SpotId, steps: &[&str]) -> Option<SpotId> {
        steps.iter().try_fold(from, |id, step| {
            self.children(id).find(|child| match self.spot(*child).map(|spot| &spot.step) {
                Some(Step::Key(key)) => **key == **step,
                Some(Step::Item(index)) => step.parse() == Ok(*index),
                Some(Step::Document(_)) | None => false,
            })
        })
    }

    /// Returns the scalar whose value, or else the node whose key, is at that offset; the position right after it counts.
    #[must_use]
    pub fn at(&self, offset: usize) -> Option<SpotId> {
        let first = |spot: &Spot| if spot.key.is_empty() { spot.value.start } else { spot.key.start };
        let behind = self.spots.partition_point(|spot| first(spot) <= offset);
        let holds = |range: &Range<usize>| range.start <= offset && offset <= range.end;
        let near = (0..behind).rev().take(2).filter_map(|index| {
            let spot = self.spots.get(index)?;
            let in_value = spot.style.is_some() && holds(&spot.value);
            (in_value || !spot.key.is_empty() && holds(&spot.key)).then_some(index)
        });
        near.filter_map(|index| u32::try_from(index).ok()).map(SpotId).next()
    }

    /// Returns the steps to a node, from its document on.
    #[must_use]
    pub fn path(&self, id: SpotId) -> Vec<&Step> {
        let above = |spot: &&Spot| self.spot(spot.parent?);
        let mut steps: Vec<&Step> =
            std::iter::successors(self.spot(id), above).map(|spot| &spot.step).collect();
        steps.reverse();
        steps
    }

    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.spots.len()).unwrap_or(u32::MAX)
    }
}

/// Builds a layout from the events of a text.
pub(super) struct Reader<'t> {
    text: &'t str,
    layout: Layout,
    open: Vec<Open>,
    documents: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, layout: Layout::default(), open: Vec::new(), documents: 0 }
    }

    /// Adds an event; ignored after an error.
    pub(super) fn take(&mut self, event: &Event<'_>, span: &Span) {
        if self.layout.error.is_none() {
            self.layout.error = self.event(event, span).err();
        }
    }

    pub(super) fn finish(self) -> Layout {
        let Self { text, mut layout, open, .. } = self;
        let end = layout.end();
        for open in &open {
            if let Some(spot) = layout.spots.get_mut(open.id.0 as usize) {
                (spot.next, spot.value.end) = (end, text.len());
            }
        }
        layout
    }

    fn event(&mut self, event: &Event<'_>, span: &Span) -> Result<(), YamlError> {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::Scalar(text, style, ..) => {
                if let Some(Open { key: key @ None, item: None, .. }) = self.open.last_mut() {
                    self.layout.shares |= text == "<<";
                    *key = Some((text.as_ref().into(), range));
                    return Ok(());
                }
                let style = style_of(*style);
                let range = match style {
                    Style::Literal | Style::Folded => header(self.text, range.start)..range.end,
                    Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => range,
                };
                self.spot(range, Some(style), span)?;
            }
            Event::Anchor(..) => self.layout.shares = true,
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.layout.shares = true;
                if let Some(Open { key: key @ None, item: None, .. }) = self.open.last_mut() {
                    *key = Some(("".into(), range));
                    return Ok(());
                }
                self.spot(range, None, span)?;
            }
            Event::SequenceStart(..) => self.begin(Some(0), range, span)?,
            Event::MappingStart(..) => self.begin(None, range, span)?,
            Event::SequenceEnd | Event::MappingEnd => self.close(range.start),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, item: Option<usize>, range: Range<usize>, span: &Span) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::too_much(super::events::position(&span.start), "nested too deeply"));
        }
        let is_key = matches!(self.open.last(), Some(Open { key: None, item: None, .. }));
        let id = self.spot(range, None, span)?;
        self.open.push(Open { id, key: None, item, is_key });
        Ok(())
    }

    fn close(&mut self, at: usize) {
        let end = self.layout.end();
        let Some(open) = self.open.pop() else { return };
        if let Some(spot) = self.layout.spots.get_mut(open.id.0 as usize) {
            spot.next = end;
            spot.value.end = at.max(spot.value.start);
        }
        if let Some(around) = self.open.last_mut().filter(|_| open.is_key) {
            around.key = Some(("".into(), at..at));
        }
    }

    fn spot(&mut self, value: Range<usize>, style: Option<Style>, span: &Span) -> Result<SpotId, YamlError> {
        let end = self.layout.end();
        if self.layout.spots.len() >= MAX_SPOTS {
            return Err(YamlError::too_much(super::events::position(&span.start), "too many values"));
        }
        let (step, key) = match self.open.last_mut() {
            None => {
                let document = self.documents;
                self.documents = document.saturating_add(1);
                (Step::Document(document), 0..0)
            }
            Some(Open { item: Some(item), .. }) => {
                let index = *item;
                *item = index.saturating_add(1);
                (Step::Item(index), 0..0)
            }
            Some(Open { key, .. }) => {
                let (name, range) = key.take().unwrap_or_default();
                (Step::Key(name), range)
            }
        };
        let parent = self.open.last().map(|open| open.id);
        let next = end.saturating_add(1);
        self.layout.spots.push(Spot { parent, step, key, value, style, next });
        Ok(SpotId(end))
    }
}

/// Returns the position of the `|` or `>` of the block scalar whose text begins at `start`.
fn header(text: &str, start: usize) -> usize {
    let before = text.get(..start).unwrap_or_default();
    let own = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let is_in_header = before.get(own..).is_some_and(|line| !line.trim().is_empty());
    let above = if is_in_header { text } else { before.trim_end() };
    let from = if is_in_header { own } else { above.rfind('\n').map_or(0, |at| at.saturating_add(1)) };
    let line = above.get(from..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let begins = |(at, _): &(usize, &str)| {
        let rest = line.get(at.saturating_add(1)..).unwrap_or_default();
        let rest = rest.trim_start_matches(|c: char| c == '+' || c == '-' || c.is_ascii_digit());
        rest.trim_start().is_empty() || rest.trim_start().starts_with('#')
    };
    line.match_indices(['|', '>']).find(begins).map_or(start, |(at, _)| from.saturating_add(at))
}

const fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}
