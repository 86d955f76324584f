/// A child of an operator that subscribes to many publishers: where it is kept, and a number that tells it apart from others
/// that are kept there before and after it.
@usableFromInline
struct ChildKey {
  @usableFromInline let index: Int
  @usableFromInline let number: Int

  @inlinable
  init(index: Int, number: Int) {
    self.index = index
    self.number = number
  }
}

/// The subscriptions of the publishers that an operator has under way. The owner guards it with a lock.
///
/// Adding and removing are O(1) and allocate nothing once the table has grown. Subscriptions lie in memory that is managed by
/// hand: an optional existential would cost more to copy and destroy than all else that a short-lived child needs.
@usableFromInline
struct ChildTable: ~Copyable {
  @usableFromInline
  struct Place {
    /// Counts the children that have been here.
    @usableFromInline var number = 0
    /// Whether a child is here that has its subscription.
    @usableFromInline var hasSubscription = false
    @usableFromInline var hasUnlimitedDemand = false
    /// The vacant place after this one, if this one is vacant; -1 if none.
    @usableFromInline var nextVacant = -1

    @inlinable
    init() {}
  }

  @usableFromInline var places = UnsafeMutablePointer<Place>.allocate(capacity: 1)
  /// As many as there are places; initialised where the place has one.
  @usableFromInline var subscriptions = UnsafeMutablePointer<any Subscription>.allocate(capacity: 1)
  @usableFromInline var capacity = 1
  /// How many places have been used.
  @usableFromInline var extent = 0
  @usableFromInline var firstVacant = -1
  /// How many children there are.
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable
  deinit {
    for index in 0..<extent where places[index].hasSubscription {
      (subscriptions + index).deinitialize(count: 1)
    }
    places.deallocate()
    subscriptions.deallocate()
  }

  /// Makes room for a child, which has no subscription yet.
  @inlinable
  mutating func add() -> ChildKey {
    var index = firstVacant
    if index >= 0 {
      firstVacant = places[index].nextVacant
    } else {
      if extent == capacity { grow() }
      index = extent
      (places + index).initialize(to: Place())
      extent += 1
    }
    count += 1
    return ChildKey(index: index, number: places[index].number)
  }

  /// Whether the child is still there.
  @inlinable
  func contains(_ key: ChildKey) -> Bool {
    key.index < extent && places[key.index].number == key.number
  }

  /// Keeps a child's subscription, unless the child has gone or has one.
  @inlinable
  mutating func accept(_ subscription: any Subscription, for key: ChildKey, isUnlimited: Bool) -> Bool {
    guard contains(key), !places[key.index].hasSubscription else { return false }
    places[key.index].hasSubscription = true
    places[key.index].hasUnlimitedDemand = isUnlimited
    (subscriptions + key.index).initialize(to: subscription)
    return true
  }

  /// Whether a child has been asked for everything it has.
  @inlinable
  func hasUnlimitedDemand(_ key: ChildKey) -> Bool {
    places[key.index].hasUnlimitedDemand
  }

  /// Takes a child out. Its subscription is moved to `memory`, from which the caller removes it outside the lock.
  ///
  /// - Returns: Whether there is something in the memory.
  @inlinable
  mutating func remove(_ key: ChildKey, to memory: UnsafeMutablePointer<any Subscription>) -> Bool {
    let hadSubscription = places[key.index].hasSubscription
    if hadSubscription {
      memory.moveInitialize(from: subscriptions + key.index, count: 1)
    }
    places[key.index].number += 1
    places[key.index].hasSubscription = false
    places[key.index].nextVacant = firstVacant
    firstVacant = key.index
    count -= 1
    return hadSubscription
  }

  /// The subscription of a child that is still there and hasn't been asked for everything.
  @usableFromInline
  func countedSubscription(_ key: ChildKey) -> (any Subscription)? {
    guard contains(key), places[key.index].hasSubscription, !places[key.index].hasUnlimitedDemand
    else { return nil }
    return subscriptions[key.index]
  }

  /// Notes that all children will be asked for everything, and returns the subscriptions of those that haven't been before.
  @usableFromInline
  mutating func makeUnlimited() -> [any Subscription] {
    var counted: [any Subscription] = []
    for index in 0..<extent where places[index].hasSubscription && !places[index].hasUnlimitedDemand {
      places[index].hasUnlimitedDemand = true
      counted.append(subscriptions[index])
    }
    return counted
  }

  /// Takes all children out and returns their subscriptions.
  @usableFromInline
  mutating func removeAll() -> [any Subscription] {
    var all: [any Subscription] = []
    for index in 0..<extent where places[index].hasSubscription {
      all.append((subscriptions + index).move())
      places[index].hasSubscription = false
    }
    extent = 0
    firstVacant = -1
    count = 0
    return all
  }

  @usableFromInline
  mutating func grow() {
    let morePlaces = UnsafeMutablePointer<Place>.allocate(capacity: capacity * 2)
    let moreSubscriptions = UnsafeMutablePointer<any Subscription>.allocate(capacity: capacity * 2)
    morePlaces.moveInitialize(from: places, count: extent)
    for index in 0..<extent where morePlaces[index].hasSubscription {
      (moreSubscriptions + index).moveInitialize(from: subscriptions + index, count: 1)
    }
    places.deallocate()
    subscriptions.deallocate()
    places = morePlaces
    subscriptions = moreSubscriptions
    capacity *= 2
  }
}
