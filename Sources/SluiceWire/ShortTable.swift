/// A table that is a list while it is short, and a dictionary beyond that: one entry takes a fraction of a dictionary's memory, and a few are found as fast.
///
/// For what most connections have one of and some have thousands of. While it is a list, its values are in the order in which their keys came.
@usableFromInline package struct ShortTable<Key: Hashable, Value> {
  @usableFromInline typealias Entry = (key: Key, value: Value)

  /// A dictionary behind a reference, so that the table takes one word.
  @usableFromInline final class Dictionary {
    @usableFromInline var entries: [Key: Value]

    init(_ entries: [Key: Value]) { self.entries = entries }
  }

  @usableFromInline enum Storage {
    case list([Entry])
    case dictionary(Dictionary)
  }

  /// The most entries of a list. A dictionary becomes a list again with half of them.
  @usableFromInline static var longestList: Int { 8 }

  @usableFromInline var storage = Storage.list([])

  @inlinable package init() {}

  @inlinable package var count: Int {
    switch storage {
    case .list(let entries): entries.count
    case .dictionary(let dictionary): dictionary.entries.count
    }
  }

  @inlinable package var isEmpty: Bool { count == 0 }

  package var keys: [Key] {
    switch storage {
    case .list(let entries): entries.map(\.key)
    case .dictionary(let dictionary): Array(dictionary.entries.keys)
    }
  }

  package var values: [Value] {
    switch storage {
    case .list(let entries): entries.map(\.value)
    case .dictionary(let dictionary): Array(dictionary.entries.values)
    }
  }

  /// Setting nil removes the entry.
  @inlinable package subscript(key: Key) -> Value? {
    get {
      switch storage {
      case .list(let entries):
        for index in entries.indices where entries[index].key == key { return entries[index].value }
        return nil
      case .dictionary(let dictionary): return dictionary.entries[key]
      }
    }
    set {
      if let newValue { insert(newValue, for: key) } else { removeValue(forKey: key) }
    }
  }

  @usableFromInline mutating func insert(_ value: Value, for key: Key) {
    switch storage {
    case .list(var entries):
      // The local array is the only one then, and is changed in place.
      storage = .list([])
      if let index = entries.firstIndex(where: { $0.key == key }) {
        entries[index].value = value
      } else if entries.count < Self.longestList {
        entries.append((key, value))
      } else {
        var all = [key: value]
        for entry in entries { all[entry.key] = entry.value }
        storage = .dictionary(Dictionary(all))
        return
      }
      storage = .list(entries)
    case .dictionary(var dictionary):
      storage = .list([])
      Self.makeUnique(&dictionary)
      dictionary.entries[key] = value
      storage = .dictionary(dictionary)
    }
  }

  /// Copies a dictionary that another table has, too.
  private static func makeUnique(_ dictionary: inout Dictionary) {
    if !isKnownUniquelyReferenced(&dictionary) { dictionary = Dictionary(dictionary.entries) }
  }

  @usableFromInline @discardableResult
  package mutating func removeValue(forKey key: Key) -> Value? {
    switch storage {
    case .list(var entries):
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
      storage = .list([])
      let value = entries.remove(at: index).value
      // An empty table holds no memory.
      storage = .list(entries.isEmpty ? [] : entries)
      return value
    case .dictionary(var dictionary):
      storage = .list([])
      Self.makeUnique(&dictionary)
      let value = dictionary.entries.removeValue(forKey: key)
      storage =
        dictionary.entries.count > Self.longestList / 2
        ? .dictionary(dictionary) : .list(dictionary.entries.map { (key: $0.key, value: $0.value) })
      return value
    }
  }
}

// @unchecked: a dictionary is changed by the only table that has it.
extension ShortTable.Dictionary: @unchecked Sendable where Key: Sendable, Value: Sendable {}
extension ShortTable.Storage: Sendable where Key: Sendable, Value: Sendable {}
extension ShortTable: Sendable where Key: Sendable, Value: Sendable {}
