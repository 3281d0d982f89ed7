//! Asks about more items than a query models, where a solver refuted a claim for a few: for the changes of an upgrade and for rules.

use std::collections::BTreeSet;

use super::builtin::Sureness;
use super::changes::Change;
use super::document::World;
use super::longer::{Cut, MOST, MOST_SHRUNK};
use super::query::{Few, Inquiry, Prepared};
use super::refusals::{Break, Question, Report, Round};
use super::shrink::{Request, shrunk};
use super::side::Side;
use super::wider::Part;
use super::{Counterexample, Solver, Undecided, Verdict, undecided};

/// The keywords that limit the number of items.
const KEYWORDS: [&str; 2] = [".maxItems", ".maxProperties"];

/// A list or map, and the changes that may be shown by some numbers of its items.
struct Task<'s> {
    cut: Cut<'s>,
    asked: Vec<(usize, Vec<usize>)>,
}

impl<'s> Question<'s> {
    /// Looks for objects with more items that show what was refuted for a few. A new bound beyond what is modelled is undecided if there
    /// is none: few items say nothing about it.
    pub(super) fn ask_beyond(&mut self, round: &Round<'_>, solver: &mut dyn Solver, report: &mut Report) {
        let tasks = self.tasks(report);
        let models = self.world.with_items(
            tasks.iter().map(|task| &task.cut),
            (round.many.assumed, round.many.texts),
            solver,
        );
        let mut models = models.into_iter();
        let mut told: BTreeSet<usize> = BTreeSet::new();
        for Task { cut, asked } in &tasks {
            let request = models.next().flatten().and_then(|model| self.request(&model));
            for (at, lengths) in asked {
                let Some(change) = self.changes.get(*at).filter(|_| !told.contains(at)) else { continue };
                let found = lengths.iter().find_map(|length| {
                    let (object, stored) = request.as_ref().filter(|_| !(round.over)())?;
                    let over = || *length > MOST_SHRUNK || (round.over)();
                    let mut tried = cut.lengthened(object, *length).into_iter();
                    tried.find_map(|object| round.trial.smallest(change, (object, stored.clone()), &over))
                });
                if let Some(found) = found {
                    told.insert(*at);
                    let (place, field) = (change.place.clone(), change.field.clone());
                    report.breaks.push(Break { place, field, found });
                } else if is_bound(change) {
                    told.insert(*at);
                    let what = format!("a list or map of more than {} items", cut.room);
                    report.undecided.push(undecided(what).of(1, &change.place));
                }
            }
        }
    }

    fn tasks(&mut self, report: &Report) -> Vec<Task<'s>> {
        let open = self.refuted(report);
        let cuts =
            if open.is_empty() { Vec::new() } else { self.world.cuts(self.roots.0).unwrap_or_default() };
        let mut tasks = Vec::new();
        for cut in cuts {
            let lengths = |at: &usize| {
                let change = self.changes.get(*at)?;
                let is_about = match change.rule {
                    Some(_) => cut.is_within(&change.field),
                    None => is_bound(change) && cut.field == change.field,
                };
                let lengths = if is_about { self.world.lengths(change.refused, &cut) } else { Vec::new() };
                // A bound is asked about in any case: what cannot be tried is undecided.
                let is_asked = lengths.first().is_some_and(|least| *least <= MOST || is_bound(change));
                is_asked.then_some((*at, lengths))
            };
            let asked: Vec<_> = open.iter().filter_map(lengths).collect();
            if !asked.is_empty() {
                tasks.push(Task { cut, asked });
            }
        }
        tasks
    }

    /// Returns the changes that are neither shown to break something nor undecided.
    fn refuted(&self, report: &Report) -> Vec<usize> {
        let is_told = |change: &Change| {
            let shown = |found: &Break| found.place == change.place && found.field == change.field;
            let open = |one: &Undecided| one.field.as_ref() == Some(&change.place);
            report.breaks.iter().any(shown) || report.undecided.iter().any(open)
        };
        let refuted = self.changes.iter().enumerate().filter(|(_, change)| !is_told(change));
        refuted.map(|(at, _)| at).collect()
    }
}

fn is_bound(change: &Change) -> bool {
    change.rule.is_none() && KEYWORDS.iter().any(|keyword| change.place.ends_with(keyword))
}

impl Inquiry<'_> {
    /// Returns the verdict on a claim that holds for a few items: looks for an object with more items that breaks it.
    pub(super) fn beyond(
        &self,
        prepared: &mut Prepared<'_>,
        that: Option<&Side>,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Verdict {
        self.broken_beyond(prepared, that, solver, over).unwrap_or_else(|| prepared.holds())
    }

    fn broken_beyond(
        &self,
        prepared: &mut Prepared<'_>,
        that: Option<&Side>,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Option<Verdict> {
        let (world, broken) = (&mut prepared.world, prepared.broken);
        if !world.is_bounded {
            return None;
        }
        let mut cuts = world.cuts(prepared.objects.new).ok()?;
        cuts.retain(|cut| world.lengths(broken, cut).first().is_some_and(|least| *least <= MOST));
        let needed = world.needed(&[]);
        let models = world.with_items(cuts.iter(), (&needed.assumed, &needed.texts), solver);
        for (cut, model) in cuts.iter().zip(models) {
            let Some(model) = model else { continue };
            for length in prepared.world.lengths(broken, cut) {
                for request in self.requests(prepared, &model) {
                    if over() {
                        return None;
                    }
                    if let Some(found) = self.longer(cut, &request, length, that) {
                        let confirmed = |request: &_| self.confirmed(request, that);
                        let over = || length > MOST_SHRUNK || over();
                        return Some(Verdict::Refuted(Box::new(shrunk(found, confirmed, &over))));
                    }
                }
            }
        }
        None
    }

    /// Tries one request with so many items in a list: in the new object, and in both.
    fn longer(
        &self,
        cut: &Cut<'_>,
        request: &Request,
        length: usize,
        that: Option<&Side>,
    ) -> Option<Counterexample> {
        let (new, old) = request;
        let longer = cut.lengthened(new, length);
        let both = old.iter().flat_map(|old| {
            let olds = cut.lengthened(old, length);
            longer.iter().cloned().zip(olds.into_iter().map(Some))
        });
        let alone = longer.iter().map(|new| (new.clone(), old.clone()));
        alone.chain(both).find_map(|request| self.confirmed(&request, that))
    }
}

impl Inquiry<'_> {
    /// Returns the verdict on a claim that holds for a few items in these operations.
    pub(super) fn widely(
        &self,
        few: &[Few],
        that: Option<&Side>,
        solver: &mut dyn Solver,
        over: &dyn Fn() -> bool,
    ) -> Verdict {
        let mut solver = Part::of(solver);
        let mut bounds = Vec::new();
        for Few { update, items, wider } in few {
            let wider = wider.and_then(|items| {
                let world = World::wide(items, self.view());
                let mut prepared = self.prepare(world, Sureness::Certain, *update, that).ok()?;
                self.ask(&mut prepared, that, Some(&mut solver), over).ok()
            });
            match wider {
                Some(Verdict::Holds { up_to }) => bounds.extend(up_to),
                Some(refuted @ Verdict::Refuted(_)) => return refuted,
                Some(Verdict::Undecided(_)) | None => bounds.push(*items),
            }
        }
        Verdict::Holds { up_to: bounds.into_iter().min() }
    }
}

impl Prepared<'_> {
    /// Returns the number of items with which to ask again, if the claim holds for a few.
    pub(super) fn wider(&mut self, verdict: &Verdict) -> Option<usize> {
        match verdict {
            Verdict::Holds { up_to: Some(_) } => self.world.wider(self.objects.new, &[self.broken]),
            _ => None,
        }
    }
}
