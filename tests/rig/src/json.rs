//! Sets fields of documents.

use serde_json::Value;

/// Sets a field that is missing.
pub fn set(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object[field] = value;
    }
}

/// Sets a field, or removes it.
pub fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(members) = object.as_object_mut() {
        members.remove(field);
        members.extend(value.map(|it| (field.to_owned(), it)));
    }
}

/// The items of a list, if it is there.
pub fn items<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
