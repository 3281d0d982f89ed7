//! Implements natural numbers of any size in decimal, for quantities above 64 bits: scaling by powers of ten is the common case, so
//! one digit per byte is both simple and quick enough. Lengths are limited by the text that a number was parsed from and by the
//! exponents that callers allow.

use std::cmp::Ordering;

/// The digits, the most significant first, without leading zeros; empty for zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digits(Vec<u8>);

impl Digits {
    /// Parses ASCII digits; other characters are skipped.
    pub(super) fn parse(text: &str) -> Self {
        let digits = text.bytes().filter(u8::is_ascii_digit).map(|byte| byte.wrapping_sub(b'0'));
        Self(digits.skip_while(|digit| *digit == 0).collect())
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(|digit| char::from(b'0'.wrapping_add(*digit))).collect()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.len().cmp(&other.len()).then_with(|| self.0.cmp(&other.0))
    }

    /// Compares two numbers with the decimal point before the first digit: `0.15` and `0.149`.
    pub(super) fn compare_from_top(&self, other: &Self) -> Ordering {
        let length = self.len().max(other.len());
        let padded = |digits: &Self| -> Vec<u8> {
            digits.0.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
        };
        padded(self).cmp(&padded(other))
    }

    /// Multiplies by a power of ten.
    pub(super) fn append_zeros(&mut self, count: usize) {
        if !self.is_zero() {
            self.0.resize(self.len().saturating_add(count), 0);
        }
    }

    /// Drops the last `count` digits, rounding up if one of them is not zero; also returns whether all were.
    pub(super) fn drop_last_rounding_up(&self, count: usize) -> (Self, bool) {
        let (kept, dropped) = self.0.split_at_checked(self.len().saturating_sub(count)).unwrap_or((&[], &[]));
        let exact = dropped.iter().all(|digit| *digit == 0);
        let kept = Self(kept.to_vec());
        if exact { (kept, true) } else { (kept.plus(&Self(vec![1])), false) }
    }

    /// Drops trailing zeros; also returns how many.
    pub(super) fn without_trailing_zeros(mut self) -> (Self, usize) {
        let before = self.len();
        while self.0.pop_if(|digit| *digit == 0).is_some() {}
        let removed = before.saturating_sub(self.len());
        (self, removed)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = Vec::with_capacity(self.len().max(other.len()).saturating_add(1));
        let (mut x, mut y) = (self.0.iter().rev(), other.0.iter().rev());
        let mut carry = 0_u8;
        loop {
            let (dx, dy) = (x.next(), y.next());
            if dx.is_none() && dy.is_none() && carry == 0 {
                break;
            }
            let digit = carry.wrapping_add(*dx.unwrap_or(&0)).wrapping_add(*dy.unwrap_or(&0));
            sum.push(digit.wrapping_rem(10));
            carry = digit.wrapping_div(10);
        }
        Self::from_reversed(sum)
    }

    /// Subtracts `other`, which is at most `self`.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut difference = Vec::with_capacity(self.len());
        let mut y = other.0.iter().rev();
        let mut borrow = 0_u8;
        for x in self.0.iter().rev() {
            let subtrahend = y.next().unwrap_or(&0).wrapping_add(borrow);
            borrow = u8::from(*x < subtrahend);
            difference.push(x.wrapping_add(borrow.wrapping_mul(10)).wrapping_sub(subtrahend));
        }
        Self::from_reversed(difference)
    }

    /// Multiplies by a factor of at most 2^60.
    pub(super) fn times(&self, factor: u64) -> Self {
        let mut product = Vec::with_capacity(self.len().saturating_add(19));
        let mut carry = 0_u64;
        for digit in self.0.iter().rev() {
            let next = u64::from(*digit).wrapping_mul(factor).wrapping_add(carry);
            product.push(last_digit(next));
            carry = next.wrapping_div(10);
        }
        while carry > 0 {
            product.push(last_digit(carry));
            carry = carry.wrapping_div(10);
        }
        Self::from_reversed(product)
    }

    /// Divides by 1024, if that leaves no remainder.
    pub(super) fn divided_by_1024(&self) -> Option<Self> {
        let mut quotient = Vec::with_capacity(self.len());
        let mut rest = 0_u64;
        for digit in &self.0 {
            let next = rest.wrapping_mul(10).wrapping_add(u64::from(*digit));
            quotient.push(last_digit(next.wrapping_div(1_024)));
            rest = next.wrapping_rem(1_024);
        }
        (rest == 0).then(|| Self(quotient.into_iter().skip_while(|digit| *digit == 0).collect()))
    }

    fn from_reversed(mut digits: Vec<u8>) -> Self {
        while digits.pop_if(|digit| *digit == 0).is_some() {}
        digits.reverse();
        Self(digits)
    }
}

fn last_digit(number: u64) -> u8 {
    u8::try_from(number.wrapping_rem(10)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        let of = Digits::parse;
        assert_eq!(of("999").plus(&of("1")), of("1000"));
        assert_eq!(of("1000").minus(&of("1")), of("999"));
        assert_eq!(of("5").minus(&of("5")), of("0"));
        assert_eq!(of("9007199254740993").times(1 << 60), of("10384593717069656409982497265287168"));
        assert_eq!(of("1048576").divided_by_1024(), Some(of("1024")));
        assert_eq!(of("1500").divided_by_1024(), None);
        assert_eq!(of("1201").drop_last_rounding_up(2), (of("13"), false));
        assert_eq!(of("1200").without_trailing_zeros(), (of("12"), 2));
        assert_eq!(of("15").compare_from_top(&of("149")), Ordering::Greater);
    }
}
