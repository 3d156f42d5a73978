//! How the numbers of epochs, or of steps, follow one another. Pure.

/// What a line is to the unit between it and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// It ends one.
    Ends,
    /// It ends one if the next line is as far from it; what was unconfirmed before is none.
    Unconfirmed,
    /// It ends one, and confirms the one before.
    Confirms,
}

/// The numbers so far. Lines of every tenth step (0, 10, 20) end units of ten steps, once two of them are equally far apart: some scripts
/// also print their first (1, 10, 20), or their last.
#[derive(Debug, Default)]
pub struct Numbering {
    last: Option<u64>,
    stride: Option<u64>,
    guess: Option<u64>,
    /// A guess was wrong.
    missed: bool,
    /// Only consecutive numbers will do: an epoch is one epoch.
    one_by_one: bool,
}

impl Numbering {
    pub fn new(one_by_one: bool) -> Self {
        Numbering { one_by_one, ..Numbering::default() }
    }

    /// Take the next number, `None` if it is not one; an error has the reason why it cannot be the next.
    pub fn follow(&mut self, noun: &str, number: Option<u64>) -> Result<Follows, String> {
        self.not_back(noun, number)?;
        let (Some(last), Some(now)) = (self.last, number) else {
            self.last = number;
            return Ok(Follows::Ends);
        };
        let gap = now - last;
        let follows = match (self.stride, self.guess) {
            (Some(stride), _) if gap == stride => Follows::Ends,
            (None, None) if gap == 1 => Follows::Ends,
            (None, Some(guess)) if gap == guess => Follows::Confirms,
            (None, None) if !self.one_by_one => Follows::Unconfirmed,
            (None, Some(_)) if !self.missed => Follows::Unconfirmed,
            (stride, guess) => {
                let before = stride.or(guess).filter(|stride| *stride != 1);
                let before = before.map(|stride| format!(", by {stride} before")).unwrap_or_default();
                let even = "print lines at equal distances, or each with its duration";
                return Err(format!("the output jumps from {noun} {last} to {noun} {now}{before}: {even}"));
            }
        };
        match follows {
            Follows::Ends | Follows::Confirms => self.stride = Some(gap),
            Follows::Unconfirmed => {
                self.missed = self.guess.is_some();
                self.guess = Some(gap);
            }
        }
        self.last = Some(now);
        Ok(follows)
    }

    /// Take the next number of a line that has its own duration: some may be left out.
    pub fn pass(&mut self, noun: &str, number: Option<u64>) -> Result<(), String> {
        self.not_back(noun, number)?;
        self.last = number;
        Ok(())
    }

    /// Time does not go back.
    fn not_back(&self, noun: &str, number: Option<u64>) -> Result<(), String> {
        match (self.last, number) {
            (Some(last), Some(now)) if now < last => {
                Err(format!("the output goes back from {noun} {last} to {noun} {now}: the pattern must match one training only"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Follows::{Confirms, Ends, Unconfirmed};
    use super::*;

    fn follow(numbers: &[u64]) -> Result<Vec<Follows>, String> {
        let mut numbering = Numbering::default();
        numbers.iter().map(|&number| numbering.follow("step", Some(number))).collect()
    }

    #[test]
    fn a_constant_stride_is_the_unit() {
        assert_eq!(follow(&[4, 5, 6]).unwrap(), [Ends, Ends, Ends]);
        assert_eq!(follow(&[0, 10, 20, 30]).unwrap(), [Ends, Unconfirmed, Confirms, Ends]);
        assert_eq!(follow(&[50, 100, 150]).unwrap(), [Ends, Unconfirmed, Confirms]);
        assert_eq!(
            follow(&[1, 10, 20, 30]).unwrap(),
            [Ends, Unconfirmed, Unconfirmed, Confirms],
            "the first was printed besides"
        );
    }

    #[test]
    fn numbers_without_one_are_an_error() {
        insta::assert_snapshot!(follow(&[3, 4, 6]).unwrap_err(), @"the output jumps from step 4 to step 6: print lines at equal distances, or each with its duration");
        insta::assert_snapshot!(follow(&[0, 10, 20, 25]).unwrap_err(), @"the output jumps from step 20 to step 25, by 10 before: print lines at equal distances, or each with its duration");
        insta::assert_snapshot!(follow(&[0, 10, 25, 27]).unwrap_err(), @"the output jumps from step 25 to step 27, by 15 before: print lines at equal distances, or each with its duration");
        insta::assert_snapshot!(follow(&[20, 10]).unwrap_err(), @"the output goes back from step 20 to step 10: the pattern must match one training only");
        let mut epochs = Numbering::new(true);
        assert_eq!(epochs.follow("epoch", Some(3)), Ok(Ends));
        insta::assert_snapshot!(epochs.follow("epoch", Some(6)).unwrap_err(), @"the output jumps from epoch 3 to epoch 6: print lines at equal distances, or each with its duration");
    }
}
