//! Keys in rows: each is a key of a file, a field of a struct, and its reading.
//!
//! ```
//! # use collo_text::fields::ValueKind::*;
//! # use std::time::Duration;
//! collo_text::keys! { "collo schema observer";
//!     /// A program that reads a GPU.
//!     #[derive(Debug)]
//!     pub struct Reader {
//!         command: Vec<String>, "program and arguments";
//!         rate_hz: f64 [Number(0.001..=1000.0)] = 1, "readings per second";
//!         timeout ("stop_timeout"): Duration = "10s", "how long it may take to end";
//!         packages [Text], "a file, which is read elsewhere";
//!     } and {
//!         /// The name of the file.
//!         pub name: String,
//!     }
//! }
//! ```
//!
//! A row is the field, the key's name where it is another, the type, the kind where it is not the type's own, the default as it would be
//! written, and what it means. A row without a type is a key without a field. `and` adds fields without a key. `Reader::KEYS` is the table of
//! keys, `Reader::from_fields` fills the struct, and its default is what an empty file gives.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;

use super::{Fields, Shape, Value, ValueKind, read};
use crate::Source;

/// A type of the field of a key. Its default is what the field has where the key is absent, or where its value was wrong and reported.
pub trait KeyType: Default {
    /// What may be written, unless the row gives another kind.
    const KIND: ValueKind;
    /// `None`: a value of another kind.
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! key_type {
    ($($type:ty, $kind:expr, $value:pat => $of:expr;)*) => {
        $(impl KeyType for $type {
            const KIND: ValueKind = $kind;
            fn of(value: &Value) -> Option<Self> {
                if let $value = value { $of } else { None }
            }
        })*
    };
}

key_type! {
    String, ValueKind::Text, Value::Text(text) => Some(text.clone());
    PathBuf, ValueKind::Text, Value::Text(text) => Some(text.into());
    u64, ValueKind::Whole(0..=u64::MAX), Value::Whole(n) => Some(*n);
    u32, ValueKind::Whole(0..=u32::MAX as u64), Value::Whole(n) => u32::try_from(*n).ok();
    f64, ValueKind::Number(0.0..=f64::INFINITY), Value::Number(n) => Some(*n);
    Duration, ValueKind::Duration, Value::Duration(duration) => Some(*duration);
    // True unless the word denies.
    bool, ValueKind::Choice(&["yes", "no"]), Value::Text(word) => Some(!["no", "off", "refuse"].contains(&word.as_str()));
    Json, ValueKind::Setting, Value::Setting(value) => Some(value.clone());
}

impl<T: KeyType> KeyType for Option<T> {
    const KIND: ValueKind = T::KIND;
    fn of(value: &Value) -> Option<Self> {
        T::of(value).map(Some)
    }
}

impl<T: KeyType> KeyType for Arc<T> {
    const KIND: ValueKind = T::KIND;
    fn of(value: &Value) -> Option<Self> {
        T::of(value).map(Arc::new)
    }
}

impl<T: KeyType> KeyType for Vec<T> {
    const KIND: ValueKind = ValueKind::List(&T::KIND);
    fn of(value: &Value) -> Option<Self> {
        let Value::List(all) = value else { return None };
        Some(all.iter().filter_map(|found| T::of(&found.value)).collect())
    }
}

impl<T: KeyType> KeyType for BTreeMap<String, T> {
    const KIND: ValueKind = ValueKind::Map(&T::KIND);
    fn of(value: &Value) -> Option<Self> {
        let Value::Table(fields) = value else { return None };
        Some(fields.found.iter().filter_map(|(key, (_, found))| Some((key.clone(), T::of(&found.value)?))).collect())
    }
}

impl Fields {
    /// The value of a key.
    pub fn get<T: KeyType>(&self, key: &str) -> T {
        self.found(key).and_then(|found| T::of(&found.value)).unwrap_or_default()
    }

    /// The same with the defaults of the keys that are absent.
    pub fn or_defaults(&self, shape: &Shape) -> Fields {
        let absent = shape.keys.iter().filter(|key| self.found(key.name).is_none());
        let text: String = absent.filter_map(|key| Some(format!("{} = {}\n", key.name, key.default?))).collect();
        let mut all = self.clone();
        all.complete_from(read(&Source::argument("defaults", &text), shape).0);
        all
    }
}

/// The tables of a file, a row for each key, as the header of `fields/keys.rs` describes.
#[macro_export]
macro_rules! keys {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@kind [$($type:ty)?] [$kind:expr]) => { $kind };
    (@kind [$type:ty] []) => { <$type as $crate::fields::KeyType>::KIND };
    (@fill $table:ident $fields:ident $field:ident [$($name:literal)?] []) => {};
    (@fill $table:ident $fields:ident $field:ident [$($name:literal)?] [$type:ty]) => {
        $table.$field = $fields.get($crate::keys!(@name $field $($name)?))
    };
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    (@shape $help:literal [$($others:expr)?] $(
        $field:ident $(($name:literal))? $(: $type:ty)? $([$kind:expr])? $(= $default:tt)?, $about:literal;
    )*) => {
        $crate::fields::Shape {
            help: $help,
            others: $crate::keys!(@optional $(&$others)?),
            keys: &[$($crate::fields::Key {
                name: $crate::keys!(@name $field $($name)?),
                kind: $crate::keys!(@kind [$($type)?] [$($kind)?]),
                default: $crate::keys!(@optional $(stringify!($default))?),
                about: $about,
            }),*],
        }
    };
    ($help:literal; $(
        $(#[$meta:meta])* pub struct $Table:ident {
            $($field:ident $(($name:literal))? $(: $type:ty)? $([$kind:expr])? $(= $default:tt)?, $about:literal;)*
        } $(and {
            $($(#[$doc:meta])* $seen:vis $own:ident: $own_type:ty,)*
        })?
    )*) => {
        $(
            $(#[$meta])*
            pub struct $Table {
                $($(#[doc = $about] pub $field: $type,)?)*
                $($($(#[$doc])* $seen $own: $own_type,)*)?
            }

            impl $Table {
                pub const KEYS: &'static $crate::fields::Shape = &$crate::keys!(@shape $help []
                    $($field $(($name))? $(: $type)? $([$kind])? $(= $default)?, $about;)*);

                /// The values found, else the defaults.
                pub fn from_fields(fields: &$crate::fields::Fields) -> $Table {
                    let fields = fields.or_defaults(Self::KEYS);
                    let mut table = $Table { $($($field: <$type>::default(),)?)* $($($own: Default::default(),)*)? };
                    $($crate::keys!(@fill table fields $field [$($name)?] [$($type)?]);)*
                    table
                }
            }

            impl Default for $Table {
                fn default() -> $Table {
                    $Table::from_fields(&$crate::fields::Fields::default())
                }
            }

            impl $crate::fields::KeyType for $Table {
                const KIND: $crate::fields::ValueKind = $crate::fields::ValueKind::Table(Self::KEYS);
                fn of(value: &$crate::fields::Value) -> Option<Self> {
                    match value {
                        $crate::fields::Value::Table(fields) => Some($Table::from_fields(fields)),
                        _ => None,
                    }
                }
            }
        )*
    };
    ($help:literal; $(
        $(#[$meta:meta])* pub static $Table:ident $([$others:expr])? {
            $($field:ident $(($name:literal))? $([$kind:expr])? $(= $default:tt)?, $about:literal;)*
        }
    )*) => {
        $($(#[$meta])* pub static $Table: $crate::fields::Shape = $crate::keys!(@shape $help [$($others)?]
            $($field $(($name))? $([$kind])? $(= $default)?, $about;)*);)*
    };
}

/// An enum of words that a file may have.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $Words:ident { $($(#[$doc:meta])* $Word:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub enum $Words { $($(#[$doc])* $Word),* }

        impl $Words {
            /// In the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            pub fn as_str(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            pub fn parse(word: &str) -> Option<Self> {
                [$(Self::$Word),*].into_iter().find(|one| one.as_str() == word)
            }
        }

        impl $crate::fields::KeyType for $Words {
            const KIND: $crate::fields::ValueKind = $crate::fields::ValueKind::Choice(Self::WORDS);
            fn of(value: &$crate::fields::Value) -> Option<Self> {
                if let $crate::fields::Value::Text(word) = value { Self::parse(word) } else { None }
            }
        }
    };
}
