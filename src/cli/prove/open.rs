//! Answers claims that are undecided without a solver: policies about unknown kinds, and documents that are too large.

use std::io::{self, Write};

use admit_analysis::prove::{Undecided, Verdict};
use admit_apimachinery::pointer;
use admit_policy::manifest::Document;

use super::answer::Answer;

/// The largest document that is handled, in bytes of JSON: servers store up to 1.5 MiB.
const MOST_STORED: usize = 1_536 << 10;

/// The compared documents, and the claim about them.
#[derive(Clone, Copy)]
pub(super) struct Compared<'d> {
    pub(super) claim: &'static str,
    pub(super) left: &'d Document,
    pub(super) right: Option<&'d Document>,
}

impl Compared<'_> {
    /// Answers for a policy about kinds with unknown fields: those that are not built in and have no CRD.
    pub(super) fn of_no_subject(self, unknown: &[String], is_policy: bool) -> Answer {
        let kinds = if unknown.is_empty() { "no kinds".to_owned() } else { unknown.join(", ") };
        let what = if unknown.is_empty() {
            "constraints that name no kind which policies are asked about".to_owned()
        } else {
            format!("objects that are not built in, without a CRD among --definitions: {kinds}")
        };
        self.open(self.left, what, Some("spec.matchConstraints"), kinds, is_policy)
    }

    /// Answers for a document that would need too much memory; None if no document is too large.
    pub(super) fn too_large(self, is_policy: bool) -> Option<Answer> {
        let large = std::iter::once(self.left).chain(self.right).find_map(|document| {
            let size = size(document)?;
            (size > MOST_STORED).then_some((document, size))
        });
        let (document, size) = large?;
        let what = format!("too large: {size} bytes, of which no server stores more than {MOST_STORED}");
        let kind = pointer::text(&document.value, "/spec/names/kind").to_owned();
        Some(self.open(document, what, None, kind, is_policy))
    }

    fn open(
        self,
        document: &Document,
        what: String,
        field: Option<&str>,
        kind: String,
        is_policy: bool,
    ) -> Answer {
        let compared = || std::iter::once(self.left).chain(self.right);
        let position = field.map_or_else(|| document.here(), |field| document.position(field));
        let side = usize::from(!std::ptr::eq(document, self.left));
        let one = Undecided { what, field: field.map(str::to_owned), span: None, side };
        Answer {
            claim: self.claim,
            names: compared()
                .map(|document| pointer::text(&document.value, "/metadata/name").to_owned())
                .collect(),
            places: compared().map(|document| (document.file.to_string(), document.here())).collect(),
            kind,
            verdict: Verdict::Undecided(vec![one]),
            undecided_at: vec![(document.file.to_string(), position)],
            is_policy,
            at: None,
        }
    }
}

/// Counts the bytes that are written.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the size of a document as JSON.
fn size(document: &Document) -> Option<usize> {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, &document.value).ok()?;
    Some(counter.0)
}
