//! Builds terms of unbounded integer arithmetic.

use super::{Sort, Term, Terms};

impl Terms {
    pub(in crate::prove) fn le(&mut self, left: Term, right: Term) -> Term {
        match (self.known_int(left), self.known_int(right)) {
            (Some(left), Some(right)) => self.bool(left <= right),
            _ if left == right => self.bool(true),
            _ => self.apply("<=", Sort::Bool, &[left, right]),
        }
    }

    pub(in crate::prove) fn lt(&mut self, left: Term, right: Term) -> Term {
        let le = self.le(right, left);
        self.not(le)
    }

    pub(in crate::prove) fn add(&mut self, left: Term, right: Term) -> Term {
        match (self.known_int(left), self.known_int(right)) {
            (Some(a), Some(b)) => self.int(a.saturating_add(b)),
            (Some(0), _) => right,
            (_, Some(0)) => left,
            _ => self.apply("+", Sort::Int, &[left, right]),
        }
    }

    pub(in crate::prove) fn sum(&mut self, parts: &[Term]) -> Term {
        let zero = self.int(0);
        parts.iter().fold(zero, |sum, part| self.add(sum, *part))
    }

    pub(in crate::prove) fn sub(&mut self, left: Term, right: Term) -> Term {
        match (self.known_int(left), self.known_int(right)) {
            (Some(a), Some(b)) => self.int(a.saturating_sub(b)),
            (_, Some(0)) => left,
            _ => self.apply("-", Sort::Int, &[left, right]),
        }
    }

    pub(in crate::prove) fn mul(&mut self, left: Term, right: Term) -> Term {
        match (self.known_int(left), self.known_int(right)) {
            (Some(a), Some(b)) => self.int(a.saturating_mul(b)),
            _ => self.apply("*", Sort::Int, &[left, right]),
        }
    }

    /// Builds a quotient rounded towards zero, as CEL defines it; SMT-LIB rounds so that the remainder is not negative. Unspecified for
    /// a zero divisor.
    pub(in crate::prove) fn quotient(&mut self, left: Term, right: Term) -> Term {
        self.towards_zero("div", left, right)
    }

    /// Builds a remainder with the sign of the dividend.
    pub(in crate::prove) fn remainder(&mut self, left: Term, right: Term) -> Term {
        self.towards_zero("mod", left, right)
    }

    fn towards_zero(&mut self, name: &'static str, left: Term, right: Term) -> Term {
        let zero = self.int(0);
        let is_natural = self.le(zero, left);
        let direct = self.apply(name, Sort::Int, &[left, right]);
        let opposite = self.sub(zero, left);
        let mirrored = self.apply(name, Sort::Int, &[opposite, right]);
        let mirrored = self.sub(zero, mirrored);
        self.ite(is_natural, direct, mirrored)
    }

    /// Builds the sign of a number: -1, 0 or 1.
    pub(in crate::prove) fn sign(&mut self, number: Term) -> Term {
        let (minus, zero, plus) = (self.int(-1), self.int(0), self.int(1));
        let (is_below, is_above) = (self.lt(number, zero), self.lt(zero, number));
        let otherwise = self.ite(is_above, plus, zero);
        self.ite(is_below, minus, otherwise)
    }

    /// Builds a quotient rounded down, by a positive number.
    pub(in crate::prove) fn floor_quotient(&mut self, left: Term, by: i64) -> Term {
        if let (Some(left), true) = (self.known_int(left), by > 0) {
            let rounded = left.div_euclid(i128::from(by));
            return self.int(rounded);
        }
        let by = self.int(by);
        self.apply("div", Sort::Int, &[left, by])
    }

    /// Builds the remainder of [`Self::floor_quotient`]: at least zero, less than `by`.
    pub(in crate::prove) fn floor_rest(&mut self, left: Term, by: i64) -> Term {
        if let (Some(left), true) = (self.known_int(left), by > 0) {
            let rest = left.rem_euclid(i128::from(by));
            return self.int(rest);
        }
        let by = self.int(by);
        self.apply("mod", Sort::Int, &[left, by])
    }
}
