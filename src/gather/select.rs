//! Selects which gatherers run by the enable/disable rules of `gatherersConfig`; does no I/O.
//!
//! If a group (`clusterconfig`) is disabled, only its functions that are enabled by name run (`clusterconfig/nodes`);
//! of other groups all functions run except those disabled by name. A group without any function is an error of that
//! group, because the user requested a gathering and disabled all of it.

use super::gatherer::Gatherer;

/// One entry of the user's list: a group or a function, enabled or disabled.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub name: String,
    pub enabled: bool,
}

/// The selected gatherers, and problems for the user.
#[derive(Debug)]
pub struct Selection {
    pub gatherers: Vec<&'static Gatherer>,
    /// Groups with all functions disabled.
    pub empty_groups: Vec<String>,
    /// Names of no gatherer.
    pub unknown: Vec<String>,
}

/// Applies `choices` to `table`. If a name is given twice, the last entry counts.
pub fn select(table: &'static [Gatherer], choices: &[Choice]) -> Selection {
    let choice = |name: &str| choices.iter().rev().find(|choice| choice.name == name).map(|c| c.enabled);
    let runs = |gatherer: &Gatherer| {
        choice(gatherer.id).unwrap_or_else(|| choice(group(gatherer.id)).unwrap_or(true))
    };
    let gatherers: Vec<_> = table.iter().filter(|gatherer| runs(gatherer)).collect();

    let mut empty_groups = Vec::new();
    for name in table.iter().map(|gatherer| group(gatherer.id)) {
        let left = gatherers.iter().any(|gatherer| group(gatherer.id) == name);
        if !left && !empty_groups.iter().any(|seen| seen == name) {
            empty_groups.push(name.to_owned());
        }
    }
    let known = |name: &str| table.iter().any(|gatherer| gatherer.id == name || group(gatherer.id) == name);
    let unknown = choices.iter().filter(|choice| !known(&choice.name)).map(|c| c.name.clone()).collect();
    Selection { gatherers, empty_groups, unknown }
}

fn group(id: &str) -> &str {
    id.split_once('/').map_or(id, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::super::gatherer::Run;
    use super::*;

    const fn row(id: &'static str) -> Gatherer {
        Gatherer { id, collects: "", path: "", run: Run::Alone(|_| Box::pin(async { Ok(()) })) }
    }
    static TABLE: &[Gatherer] = &[row("config/nodes"), row("config/pods"), row("workloads/info")];

    fn picked(choices: &[(&str, bool)]) -> (Vec<&'static str>, Vec<String>, Vec<String>) {
        let choices: Vec<_> = choices
            .iter()
            .map(|(name, enabled)| Choice { name: (*name).to_owned(), enabled: *enabled })
            .collect();
        let selection = select(TABLE, &choices);
        (selection.gatherers.iter().map(|g| g.id).collect(), selection.empty_groups, selection.unknown)
    }

    #[test]
    fn the_enable_disable_rule() {
        let all = vec!["config/nodes", "config/pods", "workloads/info"];
        assert_eq!(picked(&[]).0, all);
        assert_eq!(picked(&[("config/pods", false)]).0, vec!["config/nodes", "workloads/info"]);
        assert_eq!(picked(&[("config", false)]).0, vec!["workloads/info"]);
        assert_eq!(picked(&[("config", false)]).1, vec!["config"]);
        assert_eq!(
            picked(&[("config", false), ("config/pods", true)]),
            (vec!["config/pods", "workloads/info"], vec![], vec![])
        );
        assert_eq!(picked(&[("config/pods", false), ("config/pods", true)]).0, all);
        assert_eq!(picked(&[("conditional", true)]).2, vec!["conditional"]);
    }
}
