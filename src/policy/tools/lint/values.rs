//! Chooses values to try a condition with: the literals that it compares with, and one from each gap between them.

use std::cmp::Ordering;

use admit_cel::syntax::Literal;

/// A value that something may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sample {
    Answer(bool),
    Number(f64),
    Text(Box<str>),
    Null,
    /// None of the literals.
    Other,
    /// How two values compare.
    Relation(Order),
}

/// How one value compares with another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Less,
    Equal,
    Greater,
    /// They differ, and have no order.
    None,
}

/// Beyond this, not every whole number is a double of its own.
const EXACT: u64 = 1 << 52;

impl Sample {
    /// Returns None for literals that are not distinguished here.
    pub(super) fn of_literal(literal: &Literal) -> Option<Self> {
        match literal {
            Literal::Null => Some(Self::Null),
            Literal::Bool(answer) => Some(Self::Answer(*answer)),
            Literal::Int(number) if number.unsigned_abs() < EXACT => {
                number.to_string().parse().ok().map(Self::Number)
            }
            Literal::Uint(number) if *number < EXACT => number.to_string().parse().ok().map(Self::Number),
            Literal::Double(number) => Some(Self::Number(*number)),
            Literal::String(text) => Some(Self::Text(text.clone())),
            Literal::Int(_) | Literal::Uint(_) | Literal::Bytes(_) => None,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(super) fn as_answer(&self) -> Option<bool> {
        match self {
            Self::Answer(answer) => Some(*answer),
            _ => None,
        }
    }

    pub(super) fn as_order(&self) -> Option<Order> {
        match self {
            Self::Relation(order) => Some(*order),
            _ => None,
        }
    }

    pub(super) fn against(&self, literal: &Self) -> Order {
        match (self, literal) {
            (Self::Number(left), Self::Number(right)) => match left.partial_cmp(right) {
                Some(Ordering::Less) => Order::Less,
                Some(Ordering::Equal) => Order::Equal,
                Some(Ordering::Greater) => Order::Greater,
                None => Order::None,
            },
            (left, right) if left == right => Order::Equal,
            _ => Order::None,
        }
    }
}

/// Returns the `literals`, and values between and beside them. With `counts`, values are integers from 0 on.
pub(super) fn samples(literals: Vec<Sample>, counts: bool) -> Vec<Sample> {
    let mut numbers: Vec<f64> = Vec::new();
    let mut samples: Vec<Sample> = Vec::new();
    for literal in literals {
        match literal {
            Sample::Number(number) => numbers.push(number),
            other if samples.contains(&other) => {}
            other => samples.push(other),
        }
    }
    if numbers.is_empty() || !samples.is_empty() {
        samples.push(Sample::Other);
    }
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let between = numbers.windows(2).filter_map(|pair| match pair {
        [left, right] => Some(f64::midpoint(*left, *right)),
        _ => None,
    });
    let beside =
        numbers.first().map(|least| least - 1.0).into_iter().chain(numbers.last().map(|most| most + 1.0));
    let mut tried: Vec<f64> = numbers.iter().copied().chain(between).chain(beside).collect();
    if counts {
        // A gap of less than two holds no whole number.
        tried.iter_mut().for_each(|number| *number = number.floor());
        tried.retain(|number| *number >= 0.0);
        tried.push(0.0);
    }
    samples.extend(tried.into_iter().map(Sample::Number));
    samples
}
