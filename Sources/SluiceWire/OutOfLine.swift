/// An optional value that takes a word where it is absent, which it mostly is.
@propertyWrapper
package struct OutOfLine<Value> {
  private final class Storage {
    let value: Value

    init(_ value: Value) { self.value = value }
  }

  private var storage: Storage?

  package init(wrappedValue: Value?) { storage = wrappedValue.map(Storage.init) }

  package var wrappedValue: Value? {
    get { storage?.value }
    set { storage = newValue.map(Storage.init) }
  }
}

// The value can't be changed in place, so copies that share it are copies of it.
extension OutOfLine: @unchecked Sendable where Value: Sendable {}
