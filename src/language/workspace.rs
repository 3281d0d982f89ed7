//! Holds all files that are open in an editor or in its folder, and answers requests about them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use admit_policy::lint::{Finding, Memory, Severity};
use admit_policy::manifest::{Document, LoadError};
use admit_policy::{Documents, ExpressionId, LoadOptions, Recorded, Types};
use serde_json::Value;

use crate::answer::{Edit, Fix, Hover, Location, Mistake, Symbol};
use crate::cases;
use crate::complete::{Item, complete};
use crate::file::{File, Good, is_kind};
use crate::fix::fix;
use crate::hover::hover;
use crate::known::Known;
use crate::lint::{Reading, Tokens};
use crate::navigate::{self, RenameError};
use crate::origin::{Files, Origins};
use crate::site::{Kind, Site};
use crate::symbols::{self, Part};
use crate::text::{Encoding, Place, Text};

/// The files of a workspace, by name, with the known kinds.
///
/// ```
/// use admit_language::{Encoding, ItemKind, Place, Workspace};
/// use admit_policy::{Documents, LoadOptions};
///
/// let definition = "
/// apiVersion: apiextensions.k8s.io/v1
/// kind: CustomResourceDefinition
/// metadata: {name: shops.example.com}
/// spec:
///   group: example.com
///   scope: Namespaced
///   names: {plural: shops, kind: Shop}
///   versions:
///   - name: v1
///     served: true
///     storage: true
///     schema:
///       openAPIV3Schema:
///         type: object
///         properties:
///           size: {type: integer, description: How large it is.}
///         x-kubernetes-validations:
///         - rule: self.size > lest
/// ";
/// let mut workspace = Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
/// workspace.open("shop.yaml", definition.to_owned());
/// let at = |character| Place { line: 18, character };
///
/// let mistakes = workspace.check("shop.yaml");
/// assert_eq!((mistakes[0].code, mistakes[0].range.clone()), ("refused", at(28)..at(32)));
/// let told = workspace.hover("shop.yaml", at(23)).unwrap();
/// assert!(told.text.contains("self.size: int") && told.text.contains("How large it is."));
/// workspace.edit("shop.yaml", at(21)..at(32), "");
/// let (range, items) = workspace.complete("shop.yaml", at(21)).unwrap();
/// assert!(range == (at(21)..at(21)));
/// assert!(items.iter().any(|item| item.label == "size" && item.kind == ItemKind::Field));
/// workspace.edit("shop.yaml", at(21)..at(21), "size > 1");
/// assert_eq!(workspace.definition("shop.yaml", at(23)).unwrap().range.start, Place { line: 16, character: 10 });
/// assert!(workspace.rename("shop.yaml", at(23), "width").is_err(), "fields belong to the definition");
/// assert!(workspace.text("shop.yaml").is_some() && workspace.files().eq(["shop.yaml"]));
/// workspace.close("shop.yaml");
/// ```
pub struct Workspace {
    files: BTreeMap<String, File>,
    builtin: Box<dyn Types>,
    options: LoadOptions,
    encoding: Encoding,
    /// The values of expressions in the last run of a case.
    last: Vec<(ExpressionId, Recorded)>,
    /// The cache of earlier checks.
    memory: Memory,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("files", &self.files.keys()).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Starts without files. `builtin` knows the types of built-in kinds.
    ///
    /// [`Workspace`] has an example of all of it.
    #[must_use]
    pub fn new(builtin: Box<dyn Types>, options: LoadOptions, encoding: Encoding) -> Self {
        let (files, last, memory) = (BTreeMap::new(), Vec::new(), Memory::default());
        Self { files, builtin, options, encoding, last, memory }
    }

    /// Adds a file, or replaces its text.
    pub fn open(&mut self, name: &str, text: String) {
        let text = Text::new(text);
        match self.files.get_mut(name) {
            Some(file) => file.set(name, text),
            None => {
                self.files.insert(name.to_owned(), File::new(name, text));
            }
        }
    }

    /// Replaces a range of a file; does nothing if the file is unknown.
    pub fn edit(&mut self, name: &str, range: Range<Place>, new: &str) {
        self.change(name, [(Some(range), new)]);
    }

    /// Applies several changes in order; one without a range replaces the whole text.
    pub fn change<'n>(
        &mut self,
        name: &str,
        changes: impl IntoIterator<Item = (Option<Range<Place>>, &'n str)>,
    ) {
        let encoding = self.encoding;
        if let Some(file) = self.files.get_mut(name) {
            let mut text = std::mem::take(&mut file.text);
            for (range, new) in changes {
                match range {
                    Some(range) => text.edit(range, new, encoding),
                    None => text = Text::new(new.to_owned()),
                }
            }
            file.set(name, text);
        }
    }

    /// Forgets a file.
    pub fn close(&mut self, name: &str) {
        self.files.remove(name);
    }

    /// Returns the names of the files, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|file| file.text.as_str())
    }

    /// Returns the findings of `admit lint` on a file, and the errors of its suites. Policies, bindings and definitions of other files
    /// count as context.
    pub fn check(&mut self, name: &str) -> Vec<Mistake> {
        let Some(file) = self.files.get(name) else { return Vec::new() };
        let mut reading = Reading::allowing(&[]);
        let mut suites = Vec::new();
        let tokens = match file.good.as_ref().filter(|_| file.is_good()) {
            Some(good) => {
                suites.extend(good.documents.iter().flat_map(|document| cases::mistakes(document)));
                self.beside(name, good, &mut reading);
                reading.known(name, &good.text, &good.documents);
                Tokens::known(&good.text, &good.layout)
            }
            None => {
                reading.file(name, file.text.as_str().to_owned(), true);
                Tokens::of(&file.text)
            }
        };
        let report = reading.lint_again(self.options, self.builtin.as_ref(), &mut self.memory);
        let range = |mistake: &LoadError| self.places(&file.text, tokens.range(mistake));
        let own = || report.findings.iter().filter(|finding| *finding.mistake.file == *name);
        let fix = |finding: &Finding| {
            fix(&file.text, &tokens.range(&finding.mistake), &finding.mistake.message, &finding.help)
        };
        let fixes = own().filter_map(fix).collect();
        let mut mistakes: Vec<Mistake> = own()
            .map(|finding| Mistake {
                range: range(&finding.mistake),
                severity: finding.severity,
                code: finding.code,
                message: finding.mistake.message.clone(),
                help: finding.help.clone(),
            })
            .collect();
        mistakes.extend(suites.into_iter().map(|mistake| Mistake {
            range: range(&mistake),
            severity: Severity::Error,
            code: "suite",
            message: mistake.message,
            help: String::new(),
        }));
        let costs = report.costs.into_iter().filter(|cost| *cost.file == *name).collect();
        if let Some(file) = self.files.get_mut(name) {
            (file.costs, file.fixes) = (costs, fixes);
        }
        mistakes
    }

    /// Returns quick fixes for misspelt names, within or around a range, from the last [`check`](Self::check) of the file; none after
    /// the file was changed.
    ///
    /// ```
    /// use admit_language::{Encoding, Place, Workspace};
    /// use admit_policy::{Documents, LoadOptions};
    ///
    /// let policy = "\
    /// apiVersion: admissionregistration.k8s.io/v1
    /// kind: ValidatingAdmissionPolicy
    /// metadata: {name: a}
    /// spec:
    ///   matchConstraints:
    ///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    ///   validations: [{expression: object != null, mesage: none}]
    /// ";
    /// let mut workspace = Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
    /// workspace.open("a.yaml", policy.to_owned());
    /// workspace.check("a.yaml");
    /// let at = Place { line: 6, character: 46 };
    /// let fixes = workspace.fixes("a.yaml", at..at);
    /// assert_eq!((&*fixes[0].title, &*fixes[0].edit.text), ("write `message` for `mesage`", "message"));
    /// ```
    #[must_use]
    pub fn fixes(&self, name: &str, range: Range<Place>) -> Vec<Fix> {
        let Some(file) = self.files.get(name) else { return Vec::new() };
        let offset = |place: Place| file.text.offset(place, self.encoding);
        let (start, end) = (offset(range.start), offset(range.end));
        let meets = |bytes: &Range<usize>| bytes.start <= end && start <= bytes.end;
        let fix = |(bytes, meant): &(Range<usize>, String)| {
            let written = file.text.as_str().get(bytes.clone()).unwrap_or_default();
            let title = format!("write `{meant}` for `{written}`");
            Fix { title, edit: Edit { range: self.places(&file.text, bytes.clone()), text: meant.clone() } }
        };
        file.fixes.iter().filter(|(bytes, _)| meets(bytes)).map(fix).collect()
    }

    /// Adds documents of other files that those of this file may refer to.
    fn beside(&self, name: &str, good: &Good, reading: &mut Reading) {
        let is_policy = |document: &Document| {
            let kind = document.value.get("kind").and_then(Value::as_str).unwrap_or_default();
            kind.ends_with("AdmissionPolicy") || kind.ends_with("AdmissionPolicyBinding")
        };
        if !good.documents.iter().any(|document| is_policy(document)) {
            return;
        }
        let text = good.text.as_str();
        for (_, other) in self.goods().into_iter().filter(|(other, _)| *other != name) {
            for document in &other.documents {
                let group = document.value.pointer("/spec/group").and_then(Value::as_str);
                let is_meant = group.is_some_and(|group| text.contains(group));
                if is_policy(document) || is_kind(document, "CustomResourceDefinition") && is_meant {
                    reading.beside(Arc::clone(document));
                }
            }
        }
    }

    /// Returns the hover at a position.
    #[must_use]
    pub fn hover(&self, name: &str, place: Place) -> Option<Hover> {
        self.asked(name, place, |file, origins, offset| {
            let (range, text) = hover(origins, &file.costs, offset)?;
            Some(Hover { range: self.places(&file.text, origins.site.written.range(range)), text })
        })
    }

    /// Returns the completions at a position, and the range that they replace.
    #[must_use]
    pub fn complete(&self, name: &str, place: Place) -> Option<(Range<Place>, Vec<Item>)> {
        self.asked(name, place, |file, origins, offset| {
            let (range, items) = complete(origins, offset)?;
            Some((self.places(&file.text, origins.site.written.range(range)), items))
        })
    }

    /// Returns the location where the name at a position is defined.
    #[must_use]
    pub fn definition(&self, name: &str, place: Place) -> Option<Location> {
        self.asked(name, place, |_, origins, offset| {
            let (file, good, range) = navigate::definition(origins, offset)?;
            Some(Location { file: file.to_owned(), range: self.places(&good.text, range) })
        })
    }

    /// Returns the edits that rename the policy variable at a position.
    ///
    /// # Errors
    /// If there is no variable, or the new name is invalid.
    pub fn rename(&self, name: &str, place: Place, new: &str) -> Result<Vec<Edit>, RenameError> {
        let file = self.files.get(name).ok_or(RenameError::NoVariable)?;
        let ranges = navigate::rename(file, file.text.offset(place, self.encoding), new)?;
        let edit = |range| Edit { range: self.places(&file.text, range), text: new.to_owned() };
        Ok(ranges.into_iter().map(edit).collect())
    }

    /// Returns the cases of the suites of a file, each with the position of its name.
    ///
    /// ```
    /// use admit_language::{Encoding, Workspace};
    /// use admit_policy::{Documents, LoadOptions};
    ///
    /// let suite = "apiVersion: admit/v1\nkind: Suite\ncases:\n- name: 'a case'\n  expect: {outcome: allow}\n";
    /// let mut workspace = Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
    /// workspace.open("a.suite.yaml", suite.to_owned());
    /// let cases = workspace.cases("a.suite.yaml");
    /// assert_eq!((&*cases[0].0, cases[0].1.start.line, cases[0].1.start.character), ("a case", 3, 8));
    /// workspace.ran(Vec::new());
    /// assert!(workspace.values("a.suite.yaml").is_empty());
    /// ```
    #[must_use]
    pub fn cases(&self, name: &str) -> Vec<(String, Range<Place>)> {
        let found = self.good(name).into_iter().flat_map(|good| {
            cases::cases(good).into_iter().map(|(name, range)| (name, self.places(&good.text, range)))
        });
        found.collect()
    }

    /// Returns the outline of a file: documents with rules, variables, cases; empty while the text is invalid.
    ///
    /// ```
    /// use admit_language::{Encoding, SymbolKind, Workspace};
    /// use admit_policy::{Documents, LoadOptions};
    ///
    /// let suite = "apiVersion: admit/v1\nkind: Suite\ncases:\n- name: 'a case'\n  expect: {outcome: allow}\n";
    /// let mut workspace = Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
    /// workspace.open("a.suite.yaml", suite.to_owned());
    /// let symbols = workspace.symbols("a.suite.yaml");
    /// assert_eq!((&*symbols[0].name, symbols[0].range.end.line), ("Suite", 4));
    /// let case = &symbols[0].parts[0];
    /// assert_eq!((&*case.name, case.kind, case.named.start.character), ("a case", SymbolKind::Case, 8));
    /// assert_eq!(workspace.folds("a.suite.yaml"), [(0, 4), (2, 4), (3, 4)]);
    /// ```
    #[must_use]
    pub fn symbols(&self, name: &str) -> Vec<Symbol> {
        self.good(name).map(|good| self.symbols_of(good, symbols::parts(good))).unwrap_or_default()
    }

    fn symbols_of(&self, good: &Good, parts: Vec<Part>) -> Vec<Symbol> {
        let symbol = |Part { name, detail, kind, range, named, parts }| Symbol {
            name,
            detail,
            kind,
            range: self.places(&good.text, range),
            named: self.places(&good.text, named),
            parts: self.symbols_of(good, parts),
        };
        parts.into_iter().map(symbol).collect()
    }

    /// Returns the first and last line of each foldable range of a file. [`Self::symbols`] has an example.
    #[must_use]
    pub fn folds(&self, name: &str) -> Vec<(usize, usize)> {
        self.good(name).map(symbols::folds).unwrap_or_default()
    }

    fn good(&self, name: &str) -> Option<&Good> {
        self.files.get(name).filter(|file| file.is_good())?.good.as_ref()
    }

    /// Stores the values of expressions in a run of a case, replacing the previous ones. [`Self::cases`] has an example.
    pub fn ran(&mut self, recorded: Vec<(ExpressionId, Recorded)>) {
        self.last = recorded;
    }

    /// Returns the values of expressions in the last run: the end of each line, with the values to show there. Expressions changed
    /// since have none.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<(Place, String)> {
        let Some(file) = self.files.get(name) else { return Vec::new() };
        let values = cases::values(file, &self.last).into_iter();
        values.map(|(offset, text)| (file.text.place(offset, self.encoding), text)).collect()
    }

    fn asked<'f, T>(
        &'f self,
        name: &str,
        place: Place,
        answer: impl FnOnce(&'f File, &Origins<'_, 'f>, usize) -> Option<T>,
    ) -> Option<T> {
        let (name, file) = self.files.get_key_value(name)?;
        let (site, offset) = Site::at(file, file.text.offset(place, self.encoding))?;
        // Other expressions do not depend on a looked-up kind.
        let is_about_kinds = matches!(site.kind, Kind::Policy { .. } | Kind::Webhook(_) | Kind::State(_));
        let names = site.names(&self.known(is_about_kinds))?;
        let files: Files<'f> = self.goods();
        answer(file, &Origins { site: &site, file: name, names: &names, files: &files }, offset)
    }

    fn goods(&self) -> Files<'_> {
        self.files.iter().filter_map(|(name, file)| Some((name.as_str(), file.good.as_ref()?))).collect()
    }

    fn known(&self, with_definitions: bool) -> Known<'_> {
        let mut defined = Documents::default();
        for (_, good) in self.goods().into_iter().filter(|_| with_definitions) {
            good.definitions().iter().for_each(|crd| defined.insert_crd(Arc::clone(crd)));
        }
        Known { defined, builtin: self.builtin.as_ref() }
    }

    fn places(&self, text: &Text, range: Range<usize>) -> Range<Place> {
        text.place(range.start, self.encoding)..text.place(range.end, self.encoding)
    }
}
