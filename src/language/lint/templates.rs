//! Reports folders of templates, which are no YAML before they are rendered: once per chart.

use std::collections::{BTreeMap, BTreeSet};

use admit_policy::lint::{Finding, Severity};
use admit_policy::manifest::LoadError;

/// The code of findings about templates.
const CODE: &str = "template";
/// The file that makes a folder a chart.
const CHART: &str = "Chart.yaml";

/// The templates among files.
#[derive(Debug, Default)]
pub(super) struct Templates {
    /// Folders of charts.
    charts: BTreeSet<String>,
    /// The first YAML error of each template, by file name.
    found: BTreeMap<String, LoadError>,
}

impl Templates {
    /// Notes a file, which may mark its folder as a chart.
    pub(super) fn file(&mut self, name: &str) {
        if let Some(folder) =
            name.strip_suffix(CHART).filter(|folder| folder.is_empty() || folder.ends_with('/'))
        {
            self.charts.insert(folder.trim_end_matches('/').to_owned());
        }
    }

    /// Adds a template with its YAML errors.
    pub(super) fn add(&mut self, name: &str, mistakes: &[LoadError]) {
        if let Some(first) = mistakes.first() {
            self.found.insert(name.to_owned(), first.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One warning for each chart, and for each other folder with templates.
    pub(super) fn found(self) -> Vec<Finding> {
        let Self { charts, found } = self;
        // Also keyed by whether it is a chart, since a chart's templates are in folders below it.
        let mut groups: BTreeMap<(String, bool), Vec<LoadError>> = BTreeMap::new();
        for (name, mistake) in found {
            let mut above = std::iter::successors(folder(&name), |above| folder(above));
            let chart = above.find(|folder| charts.contains(*folder));
            let group = chart.or_else(|| folder(&name)).unwrap_or_default();
            groups.entry((group.to_owned(), chart.is_some())).or_default().push(mistake);
        }
        groups.into_iter().filter_map(|((folder, is_chart), all)| told(&folder, is_chart, all)).collect()
    }
}

/// Returns the parent folder; an empty string for the top folder.
fn folder(name: &str) -> Option<&str> {
    match name.rsplit_once('/') {
        Some((folder, _)) => Some(folder),
        None => (!name.is_empty()).then_some(""),
    }
}

fn told(folder: &str, is_chart: bool, all: Vec<LoadError>) -> Option<Finding> {
    let others = all.len().saturating_sub(1);
    let first = all.into_iter().next()?;
    let many = match others {
        0 => String::new(),
        1 => " like another there".to_owned(),
        others => format!(" like {others} others there"),
    };
    let shown = if folder.is_empty() { "." } else { folder };
    let (what, help) = if is_chart {
        (
            format!("of the chart `{shown}`"),
            format!("`helm template {shown} | admit lint -` reads what they make"),
        )
    } else {
        (format!("in `{shown}`"), "templates are to be rendered first".to_owned())
    };
    let message = format!("a template {what}{many}, which was passed over: {}", bare(&first.message));
    Some(Finding { code: CODE, severity: Severity::Warning, mistake: LoadError { message, ..first }, help })
}

/// Returns the message without the hint about templates.
fn bare(message: &str) -> &str {
    message.split_once("; templates are").map_or(message, |(bare, _)| bare)
}
