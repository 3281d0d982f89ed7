//! Evaluates comprehensions. A macro's loop costs exactly what its expansion would cost: each function notes which parts of the
//! expansion a charge stands for.

use bumpalo::collections::Vec as ArenaVec;

use crate::library::already_there;
use crate::limits::INTERRUPT_CHECK_FREQUENCY;
use crate::plan::{Added, Collect, CollectMap, Fold, FoldKind, General, Step};
use crate::value::{Entries, EvalError, List, Map, Value, Walk};

use super::machine::{LIST, MAP, Machine, Outcome, unless_final};
use super::watch::Watch;

/// What a comprehension walks over, and how far it is.
struct Range<'a> {
    items: Items<'a>,
    /// The number of the next round.
    round: usize,
}

enum Items<'a> {
    List(List<'a>),
    Map(Map<'a>, Walk<'a>),
}

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        self.watch.enter();
        let outcome = self.fold_range(fold);
        self.watch.leave();
        outcome
    }

    fn fold_range(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let items = match self.step(&fold.range)? {
            Value::List(list) => Items::List(list),
            Value::Map(map) => Items::Map(map, map.walk()),
            value => return Err(not_iterable(&value, fold.second.is_some())),
        };
        let range = &mut Range { items, round: 0 };
        match &fold.kind {
            FoldKind::All(predicate) => self.quantify(fold, range, predicate, false),
            FoldKind::Exists(predicate) => self.quantify(fold, range, predicate, true),
            FoldKind::ExistsOne(predicate) => self.exists_one(fold, range, predicate),
            FoldKind::Collect(collect) => self.collect(fold, range, collect),
            FoldKind::CollectMap(collect) => self.collect_map(fold, range, collect),
            FoldKind::General(general) => self.general(fold, range, general),
        }
    }

    /// Begins the next round: binds the iteration variables; false at the end.
    fn bind(&mut self, fold: &Fold, range: &mut Range<'a>) -> bool {
        let arena = self.cx.arena;
        let round = range.round;
        match &mut range.items {
            Items::List(list) => {
                if round >= list.len() {
                    return false;
                }
                let item = match list {
                    List::Document { items, decl: None } => {
                        Ok(items.get(round).map_or(Value::Null, Value::untyped))
                    }
                    _ => list.try_get(arena, round).map(|item| item.unwrap_or(Value::Null)),
                };
                match fold.second {
                    None => self.set_local(fold.first, item),
                    Some(second) => {
                        self.set_local(fold.first, Ok(Value::Int(i64::try_from(round).unwrap_or(i64::MAX))));
                        self.set_local(second, item);
                    }
                }
            }
            Items::Map(map, walk) => {
                let Some(entry) = walk.next() else { return false };
                self.set_local(fold.first, Ok(entry.key()));
                if let Some(second) = fold.second {
                    let value = match entry.made() {
                        Some(value) => Ok(value),
                        None => map.try_get(arena, &entry.key()).map(|value| value.unwrap_or(Value::Null)),
                    };
                    self.set_local(second, value);
                }
            }
        }
        self.watch.round(round);
        range.round = round.saturating_add(1);
        true
    }

    /// Counts an iteration and looks at the deadline now and then.
    fn tick(&mut self) -> Result<(), EvalError> {
        self.iterations = self.iterations.wrapping_add(1);
        if self.iterations.checked_rem(INTERRUPT_CHECK_FREQUENCY) != Some(0) {
            return Ok(());
        }
        if self.cx.deadline.is_some_and(|expired| expired()) { Err(EvalError::Interrupted) } else { Ok(()) }
    }

    /// `all` (decided by false) and `exists` (decided by true): an error is kept until a later item decides.
    fn quantify(
        &mut self,
        fold: &'a Fold,
        range: &mut Range<'a>,
        predicate: &'a Step,
        decides: bool,
    ) -> Outcome<'a> {
        let mut outcome = Ok(!decides);
        while self.bind(fold, range) {
            // The condition reads the accumulator, negates it for `exists`, and calls `@not_strictly_false`.
            self.charge_each(if decides { 3 } else { 2 })?;
            if matches!(outcome, Ok(b) if b == decides) {
                break;
            }
            // The step reads the accumulator.
            self.charge(1)?;
            match self.truth(predicate) {
                Ok(b) if b == decides => outcome = Ok(decides),
                Ok(_) => {}
                Err(error) if error.is_final() => return Err(error),
                Err(error) => outcome = outcome.and(Err(error)),
            }
            self.tick()?;
        }
        // The result reads the accumulator.
        self.charge(1)?;
        outcome.map(Value::Bool)
    }

    /// Counts the items that satisfy; the last error stays, since nothing adds to it.
    fn exists_one(&mut self, fold: &'a Fold, range: &mut Range<'a>, predicate: &'a Step) -> Outcome<'a> {
        let mut count = Ok(0_usize);
        while self.bind(fold, range) {
            match self.truth(predicate) {
                Ok(true) => {
                    // `accu + 1`
                    self.charge_each(2)?;
                    count = count.map(|count: usize| count.saturating_add(1));
                }
                Ok(false) => {}
                Err(error) if error.is_final() => return Err(error),
                Err(error) => count = Err(error),
            }
            self.tick()?;
        }
        // `accu == 1`
        self.charge_each(2)?;
        count.map(|count| Value::Bool(count == 1))
    }

    fn collect(&mut self, fold: &'a Fold, range: &mut Range<'a>, of: &'a Collect) -> Outcome<'a> {
        let mut values = ArenaVec::new_in(self.cx.arena);
        let mut failure = None;
        let start = &mut start_of(fold, LIST);
        while self.bind(fold, range) {
            match self.passes(of.filter.as_ref())? {
                Ok(true) => {
                    // `accu + [element]`: with an accumulator that is an error the element is evaluated all the same,
                    // and the accumulator's error stays.
                    self.read_accumulator(start)?;
                    let value = unless_final(self.step(&of.element))?;
                    if of.pays_list {
                        self.charge(LIST)?;
                    }
                    self.charge(1)?;
                    match value {
                        Ok(value) if failure.is_none() => {
                            values.try_reserve(1).map_err(|_| EvalError::MemoryLimitExceeded)?;
                            values.push(value);
                        }
                        Ok(_) => {}
                        Err(error) => {
                            failure.get_or_insert(error);
                        }
                    }
                }
                Ok(false) => self.charge(std::mem::take(start))?,
                // Without reading the accumulator, the step yields the filter's error.
                Err(error) => {
                    *start = 0;
                    failure = Some(error);
                }
            }
            self.tick()?;
        }
        self.read_accumulator(start)?;
        failure.map_or_else(|| Ok(Value::List(List::Values(values.into_bump_slice()))), Err)
    }

    /// Charges for reading the accumulator, and the first time for its initial value.
    fn read_accumulator(&mut self, start: &mut u64) -> Result<(), EvalError> {
        self.charge(std::mem::take(start))?;
        self.charge(1)
    }

    /// Whether an item passes the filter of a macro; without one all do.
    pub(super) fn passes(&mut self, filter: Option<&'a Step>) -> Result<Result<bool, EvalError>, EvalError> {
        let Some(filter) = filter else { return Ok(Ok(true)) };
        match self.truth(filter) {
            Err(error) if error.is_final() => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn collect_map(&mut self, fold: &'a Fold, range: &mut Range<'a>, of: &'a CollectMap) -> Outcome<'a> {
        let mut entries = Entries::new(self.cx.arena);
        let mut failure = None;
        let start = &mut start_of(fold, MAP);
        while self.bind(fold, range) {
            match self.passes(of.filter.as_ref())? {
                Ok(true) => {
                    self.read_accumulator(start)?;
                    let outcome = match &of.added {
                        Added::Entry { key, value } if failure.is_none() => {
                            self.insert_entry(&mut entries, key, value)?
                        }
                        Added::Entry { .. } => Ok(()),
                        Added::Entries(added) => self.merge_entries(&mut entries, added)?,
                    };
                    failure = failure.or(outcome.err());
                }
                Ok(false) => self.charge(std::mem::take(start))?,
                Err(error) => {
                    *start = 0;
                    failure = Some(error);
                }
            }
            self.tick()?;
        }
        self.read_accumulator(start)?;
        failure.map_or_else(|| entries.finish().map(Value::Map), Err)
    }

    /// `cel.@mapInsert(accu, key, value)`: arguments are evaluated until the first error.
    fn insert_entry(
        &mut self,
        entries: &mut Entries<'a>,
        key: &'a Step,
        value: &'a Step,
    ) -> Result<Result<(), EvalError>, EvalError> {
        let key = match unless_final(self.step(key))? {
            Ok(key) => key,
            Err(error) => return Ok(Err(error)),
        };
        let value = unless_final(self.step(value))?;
        self.charge(1)?;
        Ok(value.and_then(|value| insert(entries, key, value)))
    }

    /// `cel.@mapInsert(accu, entries)`.
    fn merge_entries(
        &mut self,
        entries: &mut Entries<'a>,
        added: &'a Step,
    ) -> Result<Result<(), EvalError>, EvalError> {
        let added = unless_final(self.step(added))?;
        self.charge(1)?;
        let map = match added {
            Ok(Value::Map(map)) => map,
            Ok(_) => return Ok(Err(EvalError::NoSuchOverload)),
            Err(error) => return Ok(Err(error)),
        };
        for entry in map.entries(Some(self.cx.arena)) {
            let (key, value) = entry?;
            if let Err(error) = insert(entries, key, value) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn general(&mut self, fold: &'a Fold, range: &mut Range<'a>, general: &'a General) -> Outcome<'a> {
        // The accumulator of an earlier walk is another value.
        self.landmark = None;
        self.pending.push((fold.accumulator, &general.init));
        while self.bind(fold, range) {
            if let Ok(Value::Bool(false)) = unless_final(self.step(&general.condition))? {
                break;
            }
            let next = unless_final(self.step(&general.step))?;
            self.pending.retain(|(local, _)| *local != fold.accumulator);
            self.set_local(fold.accumulator, next);
            self.tick()?;
        }
        self.watch.after_rounds();
        let outcome = self.step(&general.result);
        self.pending.retain(|(local, _)| *local != fold.accumulator);
        outcome
    }
}

/// Returns the cost of the accumulator's initial value: zero if it is a folded constant.
const fn start_of(fold: &Fold, units: u64) -> u64 {
    if fold.pays_start { units } else { 0 }
}

/// Adds an entry whose key must be new.
fn insert<'a>(entries: &mut Entries<'a>, key: Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
    key.as_key()?;
    if !matches!(key, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)) {
        return Err(EvalError::NoSuchOverload);
    }
    if entries.position(&key, |known, key| known.is_found_by(key)).is_some() {
        return Err(already_there(&key));
    }
    entries.push(key, value)
}

fn not_iterable(value: &Value<'_>, has_two_variables: bool) -> EvalError {
    let ty = value.go_type();
    let text = if has_two_variables {
        format!("unsupported comprehension range type: {ty}")
    } else {
        format!("got '{ty}', expected iterable type")
    };
    EvalError::Other(text.into())
}
