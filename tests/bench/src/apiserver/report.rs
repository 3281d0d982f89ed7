//! Collects the figures with their bounds, and prints them.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::Trouble;

/// The bound of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// No bound: the figure is only reported.
    None,
    /// At most this.
    Most(f64),
    /// At least so many times upstream's figure, if upstream is measured in the same run.
    Times(f64),
}

#[derive(Debug)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    bar: Bar,
    /// By measured server, the values of its turns.
    values: Vec<(&'static str, Vec<f64>)>,
}

impl Figure {
    fn of(&self, who: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == who).map(|(_, turns)| median(turns))
    }

    fn medians(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.values.iter().map(|(who, turns)| (*who, median(turns)))
    }

    /// Returns whether ours meets the bound; None if that cannot be decided.
    fn holds(&self) -> Option<bool> {
        let ours = self.of("ours")?;
        match self.bar {
            Bar::None => None,
            Bar::Most(most) => Some(ours <= most),
            Bar::Times(times) => Some(ours >= times * self.of("upstream")?),
        }
    }

    fn bar(&self) -> String {
        match self.bar {
            Bar::None => String::new(),
            Bar::Most(most) => format!("at most {most}"),
            Bar::Times(times) => format!("at least {times} × upstream"),
        }
    }
}

/// All figures.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Figure>);

impl Report {
    pub(crate) fn add(
        &mut self,
        who: &'static str,
        (name, unit): (&'static str, &'static str),
        bar: Bar,
        value: f64,
    ) {
        let Some(figure) = self.0.iter_mut().find(|figure| figure.name == name) else {
            return self.0.push(Figure { name, unit, bar, values: vec![(who, vec![value])] });
        };
        match figure.values.iter_mut().find(|(known, _)| *known == who) {
            Some((_, turns)) => turns.push(value),
            None => figure.values.push((who, vec![value])),
        }
    }

    /// Returns whether no figure is known to miss its bound.
    pub(crate) fn held(&self) -> bool {
        self.0.iter().all(|figure| figure.holds() != Some(false))
    }

    pub(crate) fn print(&self, as_json: bool) -> Result<(), Trouble> {
        let mut out = io::stdout().lock();
        if as_json {
            let rows: Vec<Value> = self.0.iter().map(row).collect();
            writeln!(out, "{}", Value::from(rows))?;
            return Ok(());
        }
        for figure in &self.0 {
            let values = figure.medians().map(|(who, value)| format!("{who} {}", rounded(value)));
            let ours = figure.of("ours");
            let others = figure.medians().filter(|(who, _)| *who != "ours");
            let ratios = others.filter_map(|(who, value)| Some(format!("{:.2} × {who}", ours? / value)));
            let told: Vec<String> = values.chain(ratios).collect();
            let verdict = match figure.holds() {
                Some(true) => "held",
                Some(false) => "MISSED",
                None if matches!(figure.bar, Bar::None) => "",
                None => "NOT COMPARED",
            };
            let (name, unit, bar) = (figure.name, figure.unit, figure.bar());
            writeln!(out, "{name:<34} {unit:<10} {:<60} {bar:<24} {verdict}", told.join("  "))?;
        }
        Ok(())
    }
}

fn row(figure: &Figure) -> Value {
    let values: serde_json::Map<String, Value> =
        figure.medians().map(|(who, value)| (who.to_owned(), json!(value))).collect();
    json!({"name": figure.name, "unit": figure.unit, "bar": figure.bar(), "values": values, "held": figure.holds()})
}

/// The value in the middle; of an even number of values, the lower one there.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

fn rounded(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
