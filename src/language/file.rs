//! Holds a file that is open in an editor. While its text is invalid YAML, the structure of the last valid text is kept, with positions
//! mapped to the current text.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use admit_apimachinery::yaml::{Change, Layout, SpotId, Step};
use admit_policy::crd::CompiledCrd;
use admit_policy::lint::PlacedCost;
use admit_policy::manifest::{Document, LoadError};
use serde_json::Value;

use crate::lint;
use crate::text::Text;

/// A file in an editor.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) text: Text,
    /// The structure of the last valid text, if there was one.
    pub(crate) good: Option<Good>,
    /// The errors of the current text, if it is invalid.
    pub(crate) mistakes: Vec<LoadError>,
    /// The estimated costs of rules, from the last check.
    pub(crate) costs: Vec<PlacedCost>,
    /// Byte ranges of misspelt names in the current text, with their corrections, from the last check.
    pub(crate) fixes: Vec<(Range<usize>, String)>,
}

/// The parsed structure of a text, with positions.
#[derive(Debug)]
pub(crate) struct Good {
    pub(crate) text: Text,
    pub(crate) layout: Layout,
    pub(crate) documents: Vec<Arc<Document>>,
    definitions: OnceCell<Vec<Arc<CompiledCrd>>>,
}

impl File {
    pub(crate) fn new(name: &str, text: Text) -> Self {
        let (mistakes, costs, fixes) = (Vec::new(), Vec::new(), Vec::new());
        let mut file = Self { text: Text::default(), good: None, mistakes, costs, fixes };
        file.set(name, text);
        file
    }

    pub(crate) fn set(&mut self, name: &str, text: Text) {
        let is_known = self.is_good() && self.good.as_mut().is_some_and(|good| good.reread(&text));
        if !is_known {
            match lint::parse_placed(name, text.as_str()) {
                Ok((documents, layout)) => {
                    let definitions = OnceCell::new();
                    let documents = documents.into_iter().map(Arc::new).collect();
                    self.good = Some(Good { text: text.clone(), layout, documents, definitions });
                    self.mistakes.clear();
                }
                Err(mistakes) => self.mistakes = mistakes,
            }
        }
        self.text = text;
        self.fixes.clear();
    }

    /// Reports whether the structure is that of the current text.
    pub(crate) fn is_good(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Maps a range of the last valid text, which contains the current `offset`, to the current text.
    pub(crate) fn now(&self, part: &Range<usize>, offset: usize) -> Option<Range<usize>> {
        let changed = self.changed()?;
        let (start, old_end, new_end) = (changed.start, changed.old_end, changed.new_end);
        let moved = |at: usize| at.saturating_sub(old_end).saturating_add(new_end);
        let range = if part.end < start {
            part.clone()
        } else if part.start > old_end {
            moved(part.start)..moved(part.end)
        } else if part.start <= start && old_end <= part.end {
            part.start..moved(part.end)
        } else {
            return None;
        };
        (range.start <= offset && offset <= range.end).then_some(range)
    }

    /// Maps a current `offset` to the last valid text; an offset in inserted text maps to the insertion.
    pub(crate) fn before(&self, offset: usize) -> Option<usize> {
        let changed = self.changed()?;
        Some(if offset <= changed.start {
            offset
        } else if offset >= changed.new_end {
            offset.saturating_sub(changed.new_end).saturating_add(changed.old_end)
        } else {
            changed.start
        })
    }

    fn changed(&self) -> Option<Changed> {
        let old = self.good.as_ref()?.text.as_str();
        let new = self.text.as_str();
        if self.is_good() {
            return Some(Changed { start: new.len(), old_end: new.len(), new_end: new.len() });
        }
        let Change { old: Range { start, end: old_end }, new_end } = Change::between(old, new);
        Some(Changed { start, old_end, new_end })
    }
}

/// The difference between the last valid text and the current one.
struct Changed {
    start: usize,
    old_end: usize,
    new_end: usize,
}

impl Good {
    /// Updates the structure for a new text if reparsing a part is enough; false if everything must be reparsed.
    fn reread(&mut self, text: &Text) -> bool {
        let (old, new) = (self.text.as_str(), text.as_str());
        let Some(mut reread) = self.layout.reread(old, new, Change::between(old, new)) else { return false };
        let Some(start) = self.layout.spot(reread.document).map(|spot| spot.value.start) else {
            return false;
        };
        let is_it = |document: &Arc<Document>| self.text.offset_of(document.here()) == start;
        let Some(index) = self.documents.iter().position(is_it) else { return false };
        let mut from_there = self.documents.iter_mut().skip(index);
        if !from_there.next().is_some_and(|document| Arc::make_mut(document).put(&mut reread)) {
            return false;
        }
        if reread.moves() {
            from_there.for_each(|document| Arc::make_mut(document).move_behind(&reread));
        }
        self.layout.put(reread);
        self.text = text.clone();
        self.definitions = OnceCell::new();
        true
    }

    /// Returns the compiled definitions, without their rules: kinds and types stay known while a rule is being edited.
    pub(crate) fn definitions(&self) -> &[Arc<CompiledCrd>] {
        self.definitions.get_or_init(|| {
            let of_crds =
                self.documents.iter().filter(|document| is_kind(document, "CustomResourceDefinition"));
            let without_rules = of_crds.map(|document| {
                let mut value = document.value.clone();
                forget_rules(&mut value);
                value
            });
            without_rules.filter_map(|value| CompiledCrd::compile(&value).ok().map(Arc::new)).collect()
        })
    }

    /// Returns the document that contains a node, its root, and the path from there.
    pub(crate) fn document_of(&self, id: SpotId) -> Option<(&Document, SpotId, Vec<String>)> {
        let mut steps = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let spot = self.layout.spot(id)?;
            let is_root = |document: &&Arc<Document>| {
                spot.style.is_none() && self.text.offset_of(document.here()) == spot.value.start
            };
            if let Some(document) = self.documents.iter().find(is_root) {
                steps.reverse();
                return Some((document, id, steps));
            }
            steps.push(match &spot.step {
                Step::Key(key) => key.to_string(),
                Step::Item(index) => index.to_string(),
                Step::Document(_) => return None,
            });
            next = spot.parent;
        }
        None
    }

    /// Returns the root of a document.
    pub(crate) fn root_of(&self, document: &Document) -> Option<SpotId> {
        let start = self.text.offset_of(document.here());
        self.layout.ids().find(|id| {
            self.layout.spot(*id).is_some_and(|spot| spot.style.is_none() && spot.value.start == start)
        })
    }
}

/// Removes the rules of all schemas; the nesting of documents is limited.
fn forget_rules(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("x-kubernetes-validations");
            map.values_mut().for_each(forget_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn is_kind(document: &Document, kind: &str) -> bool {
    document.value.get("kind").and_then(Value::as_str) == Some(kind)
}
