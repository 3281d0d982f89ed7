//! Searches small objects where no solver answers: the variables of a query take the constants of the expressions and a few other
//! values.

use super::document::World;
use super::model::{Given, Model};
use super::query::{Inquiry, Prepared};
use super::shrink::shrunk;
use super::side::Side;
use super::term::{Constant, Term};
use super::{Verdict, undecided};

/// The maximum number of objects to try.
const MOST: usize = 20_000;
/// The number of small objects to try if the solver gives no answer.
const FEW: usize = 1_000;

impl Inquiry<'_> {
    /// Searches for a counterexample where there is no solver.
    pub(super) fn search(
        &self,
        prepared: &Prepared<'_>,
        that: Option<&Side>,
        over: &dyn Fn() -> bool,
    ) -> Verdict {
        match self.searched(prepared, that, usize::MAX, over) {
            Ok(found) => found,
            Err(tried) => {
                let what = format!(
                    "no solver; none of {tried} small objects breaks the claim, which does not prove it"
                );
                Verdict::Undecided(vec![undecided(what)])
            }
        }
    }

    /// Tries a few small objects where the solver gave no answer.
    pub(super) fn tried(
        &self,
        prepared: &Prepared<'_>,
        that: Option<&Side>,
        why: &str,
        over: &dyn Fn() -> bool,
    ) -> Verdict {
        let found = self.searched(prepared, that, FEW, over);
        found.unwrap_or_else(|_| Verdict::Undecided(vec![undecided(why)]))
    }

    /// Searches small objects for a counterexample; else returns how many were tried.
    fn searched(
        &self,
        prepared: &Prepared<'_>,
        that: Option<&Side>,
        most: usize,
        over: &dyn Fn() -> bool,
    ) -> Result<Verdict, usize> {
        let mut tried = 0_usize;
        for model in models(&prepared.world, prepared.broken).take(most) {
            if over() {
                break;
            }
            tried = tried.saturating_add(1);
            let model = prepared.world.respelled(&model);
            let mut requests = self.requests(prepared, &model).into_iter();
            if let Some(found) = requests.find_map(|request| self.confirmed(&request, that)) {
                let confirmed = |request: &_| self.confirmed(request, that);
                return Ok(Verdict::Refuted(Box::new(shrunk(found, confirmed, over))));
            }
        }
        Err(tried)
    }
}

/// Enumerates models of the variables: all if there are few, else a sample spread over all.
fn models(world: &World<'_>, broken: Term) -> impl Iterator<Item = Model> {
    let mut roots = world.assumed.clone();
    roots.push(broken);
    let (mut ints, mut texts) = (vec![0, 1, -1, 2], vec![String::new(), "a".to_owned(), "b".to_owned()]);
    for constant in world.terms.constants_of(&roots) {
        match constant {
            Constant::Int(value) => {
                ints.extend([Some(value), value.checked_add(1), value.checked_sub(1)].into_iter().flatten());
            }
            Constant::Text(text) => texts.extend([text.clone(), format!("{text}a")]),
        }
    }
    ints.retain(|value| i64::try_from(*value).is_ok());
    ints.sort_by_key(|value| (value.unsigned_abs(), *value < 0));
    ints.dedup();
    texts.sort_by_key(|text| (text.len(), text.clone()));
    texts.dedup();
    let domains: Vec<(String, Vec<Given>)> = world
        .terms
        .variables_of(&roots)
        .into_iter()
        .map(|term| {
            let values = if world.terms.is_text(term) {
                texts.iter().cloned().map(Given::Text).collect()
            } else if world.terms.is_int(term) {
                ints.iter().copied().map(Given::Int).collect()
            } else {
                vec![Given::Bool(true), Given::Bool(false)]
            };
            (world.terms.name(term), values)
        })
        .collect();
    let total = domains.iter().fold(1_usize, |total, (_, values)| total.saturating_mul(values.len().max(1)));
    (0..total.min(MOST)).map(move |number| nth(&domains, number, total <= MOST))
}

/// Returns the `number`th model: its digits choose the values, or a pseudorandom sequence does.
fn nth(domains: &[(String, Vec<Given>)], number: usize, is_small: bool) -> Model {
    let mut state = number;
    domains
        .iter()
        .filter_map(|(name, values)| {
            let size = values.len();
            let digit = if is_small {
                let digit = state.checked_rem(size)?;
                state = state.checked_div(size)?;
                digit
            } else {
                // Mixes all bits (Knuth's constants), so that consecutive models differ in every variable.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33).checked_rem(size)?
            };
            Some((name.clone(), values.get(digit)?.clone()))
        })
        .collect()
}
