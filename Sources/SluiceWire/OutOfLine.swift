/// An optional value that takes one word if it is nil, the common case.
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

// @unchecked: `Storage` is constant, so copies may share it on any thread.
extension OutOfLine: @unchecked Sendable where Value: Sendable {}
