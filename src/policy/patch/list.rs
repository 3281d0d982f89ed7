//! Implements a list with cheap insertion and removal at any position.

/// Items of a full part: moving them costs about as much as looking for a part in the longest list that a body can hold.
const PART: usize = 1_024;

/// A list in chunks, none of them empty.
#[derive(Clone, Debug)]
pub(super) struct List<T> {
    parts: Vec<Vec<T>>,
    length: usize,
}

impl<T> List<T> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.parts.iter_mut().flatten()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (part, within) = self.place(index)?;
        self.parts.get_mut(part)?.get_mut(within)
    }

    /// Puts `item` before the one at `index`, or behind the last one.
    pub(super) fn insert(&mut self, index: usize, item: T) {
        self.length = self.length.saturating_add(1);
        let (part, within) = match self.place(index) {
            Some(place) => place,
            None => (self.parts.len().saturating_sub(1), usize::MAX),
        };
        let Some(items) = self.parts.get_mut(part) else {
            self.parts.push(vec![item]);
            return;
        };
        items.insert(within.min(items.len()), item);
        if items.len() > 2 * PART {
            let rest = items.split_off(PART);
            self.parts.insert(part.saturating_add(1), rest);
        }
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let (part, within) = self.place(index)?;
        let items = self.parts.get_mut(part)?;
        let item = items.remove(within);
        if items.is_empty() {
            self.parts.remove(part);
        }
        self.length = self.length.saturating_sub(1);
        Some(item)
    }

    /// The part that holds the item at `index`, and the place of the item in it.
    fn place(&self, index: usize) -> Option<(usize, usize)> {
        let mut within = index;
        for (part, items) in self.parts.iter().enumerate() {
            if within < items.len() {
                return Some((part, within));
            }
            within = within.saturating_sub(items.len());
        }
        None
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let mut list = Self { parts: Vec::new(), length: 0 };
        loop {
            let part: Vec<T> = items.by_ref().take(PART).collect();
            if part.is_empty() {
                return list;
            }
            list.length = list.length.saturating_add(part.len());
            list.parts.push(part);
        }
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.parts.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_list_that_a_vector_is() {
        let mut plain: Vec<usize> = (0..5_000).collect();
        let mut list: List<usize> = plain.iter().copied().collect();
        for step in 0..6_000 {
            let at = step * 7_919 % (plain.len() + 1);
            plain.insert(at, step);
            list.insert(at, step);
            if step % 3 == 0 {
                let at = step * 104_729 % plain.len();
                assert_eq!(list.remove(at), Some(plain.remove(at)));
            }
        }
        assert_eq!(list.len(), plain.len());
        assert_eq!(list.get_mut(4_078).copied(), plain.get(4_078).copied());
        assert_eq!(list.remove(plain.len()), None);
        assert_eq!(list.into_iter().collect::<Vec<_>>(), plain);
    }

    #[test]
    fn it_can_lose_all_and_grow_again() {
        let mut list: List<u8> = std::iter::once(1).collect();
        assert_eq!((list.remove(0), list.len()), (Some(1), 0));
        list.insert(0, 2);
        assert_eq!(list.iter().collect::<Vec<_>>(), [&2]);
    }
}
