//! Parses only the changed part of a text, for editors: after each keystroke, a long text is nearly the same.
//!
//! The part is an entry of a map with all its lines, parsed as if it were a text of its own. The result equals that of parsing
//! the whole text if the entry stays a single entry: its key is the same and in the same position, no
//! line of it is indented less, and nothing in the text refers to other nodes. If any of that is in doubt, there is no
//! result, and the whole text has to be parsed.

use std::ops::Range;

use serde_json::Value;

use super::builder::Builder;
use super::change::Change;
use super::layout::{Layout, Spot, SpotId, Step};
use super::position::Positions;
use super::source::parse_placed;
use super::tree::Tree;
use super::written::Style;

/// The most entries that are tried, from the innermost outwards.
const MAX_TRIES: usize = 4;
/// Far below the limits of a text, so that texts near the limits are parsed as a whole, and counted.
const MAX_SPOTS: usize = 400_000;
const MAX_DEPTH: usize = 200;

/// A part of a text that was parsed again.
#[derive(Clone, Debug)]
pub struct Reread {
    /// The document that contains the part.
    pub document: SpotId,
    /// The steps from the document to the part: keys of maps, and indexes of items.
    pub steps: Vec<String>,
    value: Value,
    /// The positions, relative to the part.
    positions: Positions,
    entry: Entry,
    layout: Layout,
    change: Change,
    /// The offset where the text after the part begins.
    following: usize,
    /// The line where the part begins, once that is known.
    line: usize,
    /// The number of lines of the old part, and of the new one.
    lines: (usize, usize),
}

impl Reread {
    /// Replaces the part in the document; false if the document does not have it.
    pub fn put(&mut self, value: &mut Value, positions: &mut Positions) -> bool {
        let steps: Vec<&str> = self.steps.iter().map(String::as_str).collect();
        let place = steps.iter().try_fold(value, |value, step| match value {
            Value::Object(fields) => fields.get_mut(*step),
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        });
        let Some(place) = place else { return false };
        let Some(line) = positions.follow(&steps).map(|node| node.here().line) else { return false };
        *place = std::mem::take(&mut self.value);
        let mut own = std::mem::take(&mut self.positions);
        own.shift(0, isize::try_from(line.saturating_sub(1)).unwrap_or_default());
        self.line = line;
        self.move_behind(positions);
        positions.put(&steps, own)
    }

    /// Whether the text after the part has moved to other lines.
    #[must_use]
    pub const fn moves(&self) -> bool {
        self.lines.0 != self.lines.1
    }

    /// Moves the positions after the part, after [`Self::put`].
    pub fn move_behind(&self, positions: &mut Positions) {
        let (old, new) = self.lines;
        let by = isize::try_from(new).unwrap_or_default().saturating_sub_unsigned(old);
        if self.moves() {
            positions.shift(self.line.saturating_add(old), by);
        }
    }
}

/// An entry with all its lines.
#[derive(Clone, Debug)]
struct Entry {
    id: SpotId,
    /// The bytes of its lines.
    lines: Range<usize>,
    indent: usize,
}

impl Layout {
    /// Parses the changed part of the text with this layout; None if the whole new text has to be parsed.
    ///
    /// ```
    /// use admit_apimachinery::yaml::{Change, Layout};
    ///
    /// let (old, new) = ("a:\n  b: 1\n  c: 2\n", "a:\n  b: 1\n  c: 'x'\n");
    /// let mut layout = Layout::read(old);
    /// let reread = layout.reread(old, new, Change::between(old, new)).unwrap();
    /// assert_eq!(reread.steps, ["a", "c"]);
    /// layout.put(reread);
    /// assert!(layout.ids().eq(Layout::read(new).ids()));
    /// ```
    #[must_use]
    pub fn reread(&self, old: &str, new: &str, change: Change) -> Option<Reread> {
        if self.error.is_some() || self.shares || self.spots.len() > MAX_SPOTS {
            return None;
        }
        let first = |spot: &Spot| if spot.key.is_empty() { spot.value.start } else { spot.key.start };
        let behind = self.spots.partition_point(|spot| first(spot) <= change.old.start);
        let innermost = u32::try_from(behind.checked_sub(1)?).ok().map(SpotId);
        let parent = |id: &SpotId| self.spot(*id)?.parent;
        let around = std::iter::successors(innermost, parent);
        let entries = around.filter_map(|id| self.entry(old, id)).filter(|entry| entry.holds(&change, old));
        let half = old.len() / 2;
        let small = entries.take_while(|entry| entry.lines.len() <= half || entry.lines.len() <= 4096);
        let found = small.take(MAX_TRIES).find_map(|entry| {
            let part = new.get(entry.lines.start..change.moved(entry.lines.end))?;
            let (tree, own) = self.alone(&entry, part)?;
            Some((entry, tree, own))
        });
        let (entry, tree, own) = found?;
        let weight = self.weight.saturating_add(own.weight);
        let near = Builder::most(new.len()) / 10;
        if weight > Builder::most(new.len()).saturating_sub(near) {
            return None;
        }
        let (document, steps) = self.steps_to(entry.id)?;
        let Value::Object(mut fields) = tree.value else { return None };
        let name = steps.last()?;
        let (value, positions) = (fields.get_mut(name)?, tree.positions.child(name)?);
        let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let part = new.get(entry.lines.start..change.moved(entry.lines.end))?;
        let lines = (breaks(old.get(entry.lines.clone())?), breaks(part));
        let end = change.moved(entry.lines.end);
        let indented = new.get(end..)?.bytes().take_while(|byte| *byte == b' ').count();
        Some(Reread {
            document,
            value: value.take(),
            positions: positions.clone(),
            entry,
            layout: Self { weight, ..own },
            change,
            following: end.saturating_add(indented),
            line: 0,
            lines,
            steps,
        })
    }

    /// Returns the map entry of a node, if it has lines of its own.
    fn entry(&self, text: &str, id: SpotId) -> Option<Entry> {
        let spot = self.spot(id)?;
        let Step::Key(_) = &spot.step else { return None };
        // Within brackets, lines have no meaning.
        let around = self.spot(spot.parent?)?;
        if text.get(around.value.start..)?.starts_with(['{', '[', '!', '&', '?']) {
            return None;
        }
        let start = line_of(text, spot.key.start);
        let indent = spaces(text.get(start..spot.key.start)?, spot.key.start.saturating_sub(start))?;
        let end = match self.spots.get(spot.next as usize) {
            Some(next) if !matches!(next.step, Step::Document(_)) => {
                let first = if next.key.is_empty() { next.value.start } else { next.key.start };
                let line = line_of(text, first);
                let before = text.get(line..first)?.trim_start_matches(' ');
                if !(before.is_empty() && !next.key.is_empty() || before.starts_with("- ")) {
                    return None;
                }
                line
            }
            _ => document_end(text, start),
        };
        (start < end).then_some(Entry { id, lines: start..end, indent })
    }

    /// Parses the entry by itself, if it still is a single entry.
    fn alone(&self, entry: &Entry, part: &str) -> Option<(Tree, Self)> {
        let fits = |line: &str| {
            let content = line.trim_start_matches(' ');
            let is_marker = line.starts_with("---") || line.starts_with("...") || line.starts_with('%');
            content.is_empty() || line.len().saturating_sub(content.len()) >= entry.indent && !is_marker
        };
        if part.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{feff}']) || !part.split('\n').all(fits)
        {
            return None;
        }
        let (trees, own) = parse_placed(part).ok()?;
        let [tree] = <[Tree; 1]>::try_from(trees).ok()?;
        let (root, child) = (own.spots.first()?, own.spots.get(1)?);
        let is_same = child.key.start == entry.indent
            && child.step == self.spot(entry.id)?.step
            && child.parent == Some(SpotId(0))
            && child.next == own.end()
            && root.next == own.end();
        // The end of an empty value depends on what follows.
        let is_open = own.spots.last().is_some_and(|last| last.value.is_empty());
        let depth = std::iter::successors(Some(entry.id), |id| self.spot(*id)?.parent).count();
        let is_sound = own.error.is_none()
            && !own.shares
            && tree.duplicates.is_empty()
            && depth.saturating_add(own.depth()) <= MAX_DEPTH;
        (is_same && is_sound && !is_open).then_some((tree, own))
    }

    fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::with_capacity(self.spots.len());
        for spot in &self.spots {
            let above = spot.parent.and_then(|parent| depths.get(parent.0 as usize)).copied();
            depths.push(above.unwrap_or_default().saturating_add(1));
        }
        depths.into_iter().max().unwrap_or_default()
    }

    fn steps_to(&self, id: SpotId) -> Option<(SpotId, Vec<String>)> {
        let (mut steps, mut at) = (Vec::new(), id);
        loop {
            let spot = self.spot(at)?;
            steps.push(match &spot.step {
                Step::Key(key) => key.to_string(),
                Step::Item(index) => index.to_string(),
                Step::Document(_) => break,
            });
            at = spot.parent?;
        }
        steps.reverse();
        Some((at, steps))
    }

    /// Updates the layout to that of the new text.
    pub fn put(&mut self, reread: Reread) {
        let Reread { entry, layout: own, change, following, .. } = reread;
        self.weight = own.weight;
        let at = entry.id.0;
        let Some(old_end) = self.spot(entry.id).map(|spot| spot.next) else { return };
        let above = self.spot(entry.id).and_then(|spot| spot.parent);
        let new_end = at.saturating_add(own.end().saturating_sub(1));
        let renumbered =
            |id: u32| if id < old_end { id } else { id.saturating_sub(old_end).saturating_add(new_end) };
        let ancestors: Vec<SpotId> = std::iter::successors(above, |id| self.spot(*id)?.parent).collect();
        for id in ancestors {
            if let Some(spot) = self.spots.get_mut(id.0 as usize) {
                (spot.next, spot.value.end) = (renumbered(spot.next), change.moved(spot.value.end));
            }
        }
        for spot in self.spots.iter_mut().skip(old_end as usize) {
            spot.place(|at| change.moved(at));
            spot.next = renumbered(spot.next);
            spot.parent = spot.parent.map(|parent| SpotId(renumbered(parent.0)));
        }
        let (start, length) =
            (entry.lines.start, change.moved(entry.lines.end).saturating_sub(entry.lines.start));
        let spots = own.spots.into_iter().skip(1).map(|mut spot| {
            // Collections and blocks end where the next node begins.
            let is_last =
                !matches!(spot.style, Some(Style::Plain | Style::SingleQuoted | Style::DoubleQuoted))
                    && spot.value.end >= length;
            spot.place(|at| at.saturating_add(start));
            if is_last {
                spot.value.end = following;
            }
            let numbered = |id: u32| id.saturating_add(at).saturating_sub(1);
            spot.next = numbered(spot.next);
            spot.parent = match spot.parent {
                Some(SpotId(0)) => above,
                parent => parent.map(|id| SpotId(numbered(id.0))),
            };
            spot
        });
        self.spots.splice(at as usize..old_end as usize, spots.collect::<Vec<_>>()).for_each(drop);
    }
}

impl Spot {
    fn place(&mut self, moved: impl Fn(usize) -> usize) {
        // Nodes without a key have an empty range, which does not move.
        if self.key != (0..0) {
            self.key = moved(self.key.start)..moved(self.key.end);
        }
        self.value = moved(self.value.start)..moved(self.value.end);
    }
}

impl Entry {
    /// Whether the change is within the lines, and does not touch the end of the last one.
    fn holds(&self, change: &Change, text: &str) -> bool {
        let last =
            if self.lines.end == text.len() { self.lines.end } else { self.lines.end.saturating_sub(1) };
        self.lines.start <= change.old.start && change.old.end <= last
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at.saturating_add(1))
}

/// Returns the number of spaces of a text that has nothing else.
fn spaces(text: &str, count: usize) -> Option<usize> {
    text.bytes().all(|byte| byte == b' ').then_some(count)
}

/// Returns the end of the document that contains a line.
fn document_end(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let marker = ["\n---", "\n..."].iter().filter_map(|marker| rest.find(marker)).min();
    marker.map_or(text.len(), |at| start.saturating_add(at).saturating_add(1))
}
