import Synchronization

/// Where a child of an operator that subscribes to many publishers is kept. Its address is fixed while the table lives.
@usableFromInline
@safe
struct ChildPlace: ~Copyable {
  /// Counts by two the children that have been here, and by one whether the present child has given its subscription; negative
  /// once the table is closed. Written under the owner's lock, except by `ChildKey.open()`.
  @usableFromInline let number = Atomic<Int>(0)

  /// The number of a place in a closed table.
  @inlinable static var closed: Int { -2 }
  /// The same, where a child was open whose subscription is neither in the memory nor lent, so that it is still to be cancelled.
  @inlinable static var closedTooEarly: Int { -1 }

  /// The subscription of an open child that is being asked for values for the first time and is not in the memory. The function
  /// that asks it lends the subscription, and takes the owner's lock before it returns unless the child has ended. Set without the
  /// lock; read and removed under it.
  @usableFromInline let lent = unsafe Atomic<UnsafePointer<any Subscription>?>(nil)

  // Guarded by the owner's lock.
  /// Whether a subscription is in the memory.
  @usableFromInline var hasSubscription = false
  @usableFromInline var hasUnlimitedDemand = false
  /// How many of the child's values wait in the owner's queue. In memory of its own, for adding to it here would be an access to
  /// the whole place, of which others read the number without the lock.
  @usableFromInline let waiting = UnsafeMutablePointer<Int>.allocate(capacity: 1)
  /// The vacant place after this one, if this one is vacant.
  @usableFromInline var nextVacant: UnsafeMutablePointer<ChildPlace>?
  @usableFromInline let subscription = UnsafeMutablePointer<any Subscription>.allocate(capacity: 1)

  @inlinable init() { unsafe waiting.initialize(to: 0) }

  @inlinable
  deinit {
    unsafe waiting.deallocate()
    if hasSubscription { unsafe subscription.deinitialize(count: 1) }
    unsafe subscription.deallocate()
  }
}

/// A child: its slot, and a number that distinguishes it from earlier and later children in that slot.
@usableFromInline
@safe
struct ChildKey {
  @usableFromInline let place: UnsafeMutablePointer<ChildPlace>
  @usableFromInline let number: Int

  /// The next child in a place.
  @inlinable
  init(_ place: UnsafeMutablePointer<ChildPlace>) {
    unsafe self.place = unsafe place
    number = unsafe place.pointee.number.load(ordering: .relaxed)
  }

  /// Whether the child is present and has delivered its subscription. Needs no lock, for the end of a child does not come
  /// while the child delivers.
  @inlinable var isOpen: Bool { unsafe place.pointee.number.load(ordering: .acquiring) == number &+ 1 }

  /// Whether the child is present and hasn't delivered its subscription yet.
  @inlinable var isAwaitingSubscription: Bool {
    unsafe number >= 0 && place.pointee.number.load(ordering: .acquiring) == number
  }

  /// Opens the child, which gives its subscription, without the owner's lock and without keeping the subscription.
  ///
  /// - Returns: Whether the child was awaiting it.
  @inlinable
  func open() -> Bool {
    unsafe number >= 0
      && place.pointee.number.compareExchange(
        expected: number, desired: number &+ 1, ordering: .acquiringAndReleasing
      ).exchanged
  }

  /// Lends the subscription of a child that has been opened, until the child ends or its subscription is kept.
  @inlinable
  func lend(_ subscription: UnsafePointer<any Subscription>) {
    unsafe place.pointee.lent.store(subscription, ordering: .releasing)
  }

  /// Whether the table was closed while the child was open and its subscription was out of reach.
  @inlinable var isClosedTooEarly: Bool {
    unsafe place.pointee.number.load(ordering: .acquiring) == ChildPlace.closedTooEarly
  }

  /// Whether the child is open or its subscription is still to be cancelled.
  @inlinable var needsSubscription: Bool {
    let current = unsafe place.pointee.number.load(ordering: .acquiring)
    return current == number &+ 1 || current == ChildPlace.closedTooEarly
  }
}

/// The subscriptions of the publishers that an operator has under way. The owner guards it with a lock.
///
/// Adding and removing are O(1) and allocate nothing once the table has grown. Subscriptions lie in memory that is managed by
/// hand: an optional existential would cost more to copy and destroy than all else that a short-lived child needs.
@usableFromInline
@safe
struct ChildTable: ~Copyable {
  @usableFromInline typealias Place = UnsafeMutablePointer<ChildPlace>

  @usableFromInline var places: [Place] = unsafe []
  @usableFromInline var firstVacant: Place?
  /// How many places are not vacant.
  @usableFromInline var count = 0

  @inlinable init() {}

  @inlinable
  deinit {
    for index in unsafe 0..<places.count {
      let place = unsafe places[index]
      unsafe place.deinitialize(count: 1)
      unsafe place.deallocate()
    }
  }

  /// Makes room for a child, which has no subscription yet.
  @inlinable
  mutating func add() -> ChildKey {
    count += 1
    guard let place = unsafe firstVacant else { return unsafe ChildKey(grow()) }
    unsafe firstVacant = unsafe place.pointee.nextVacant
    return unsafe ChildKey(place)
  }

  @usableFromInline
  mutating func grow() -> Place {
    let place = Place.allocate(capacity: 1)
    unsafe place.initialize(to: ChildPlace())
    unsafe places.append(place)
    return unsafe place
  }

  /// Keeps a child's subscription, unless the child has gone or has one.
  @inlinable
  mutating func accept(_ subscription: any Subscription, for key: ChildKey, isUnlimited: Bool) -> Bool {
    guard key.open() else { return false }
    keep(subscription, for: key, isUnlimited: isUnlimited)
    return true
  }

  /// Keeps the subscription of a child that is open.
  @inlinable
  mutating func keep(_ subscription: any Subscription, for key: ChildKey, isUnlimited: Bool) {
    unsafe key.place.pointee.lent.store(nil, ordering: .relaxed)
    unsafe key.place.pointee.hasSubscription = true
    unsafe key.place.pointee.hasUnlimitedDemand = isUnlimited
    unsafe key.place.pointee.subscription.initialize(to: subscription)
  }

  /// Keeps the subscription of a child that has been asked for everything, if it is still open.
  @usableFromInline
  mutating func keepIfOpen(_ subscription: any Subscription, for key: ChildKey) -> Bool {
    guard key.isOpen else { return false }
    keep(subscription, for: key, isUnlimited: true)
    return true
  }

  /// Whether a child is there that has to be asked for each value.
  @inlinable
  func isCounted(_ key: ChildKey) -> Bool { unsafe key.isOpen && !key.place.pointee.hasUnlimitedDemand }

  /// Takes a child out; its place may be used for another, or made vacant. Its subscription is moved to `memory`, from which
  /// the caller removes it outside the lock.
  ///
  /// - Returns: Whether there is something in the memory.
  @inlinable
  mutating func remove(_ key: ChildKey, to memory: UnsafeMutablePointer<any Subscription>) -> Bool {
    let hadSubscription = unsafe key.place.pointee.hasSubscription
    if hadSubscription {
      unsafe memory.moveInitialize(from: key.place.pointee.subscription, count: 1)
      unsafe key.place.pointee.hasSubscription = false
    }
    unsafe key.place.pointee.lent.store(nil, ordering: .relaxed)
    unsafe key.place.pointee.number.store(key.number &+ 2, ordering: .releasing)
    return hadSubscription
  }

  /// Counts a value of a present child: it waits in the owner's queue, or has left it.
  @usableFromInline
  func countWaiting(_ key: ChildKey, _ change: Int) {
    // In one expression it would be an access to the whole place.
    let waiting = unsafe key.place.pointee.waiting
    unsafe waiting.pointee += change
  }

  /// Returns how many values of a child that has been taken out are left in the owner's queue, and counts them no more.
  @inlinable
  func takeWaiting(_ key: ChildKey) -> Int {
    let waiting = unsafe key.place.pointee.waiting
    let count = unsafe waiting.pointee
    unsafe waiting.pointee = 0
    return count
  }

  /// Makes a place vacant from which a child has been taken out.
  @inlinable
  mutating func vacate(_ place: Place) {
    unsafe place.pointee.nextVacant = unsafe firstVacant
    unsafe firstVacant = unsafe place
    count -= 1
  }

  /// Takes out the subscription of a child that has failed.
  @usableFromInline
  mutating func takeSubscription(_ key: ChildKey) -> (any Subscription)? {
    unsafe key.place.pointee.lent.store(nil, ordering: .relaxed)
    unsafe key.place.pointee.number.store(key.number &+ 2, ordering: .releasing)
    guard unsafe key.place.pointee.hasSubscription else { return nil }
    unsafe key.place.pointee.hasSubscription = false
    return unsafe key.place.pointee.subscription.move()
  }

  /// The subscription of a child that is still there and hasn't been asked for everything.
  @usableFromInline
  func countedSubscription(_ key: ChildKey) -> (any Subscription)? {
    guard isCounted(key), unsafe key.place.pointee.hasSubscription else { return nil }
    return unsafe key.place.pointee.subscription.pointee
  }

  /// Notes that all children will be asked for everything, and returns the subscriptions of those that haven't been before.
  @usableFromInline
  mutating func makeUnlimited() -> [any Subscription] {
    var counted: [any Subscription] = []
    for index in unsafe 0..<places.count {
      let place = unsafe places[index]
      guard unsafe place.pointee.hasSubscription && !place.pointee.hasUnlimitedDemand else { continue }
      unsafe place.pointee.hasUnlimitedDemand = true
      unsafe counted.append(place.pointee.subscription.pointee)
    }
    return counted
  }

  /// Takes all children out, for good, and returns their subscriptions.
  @usableFromInline
  mutating func removeAll() -> [any Subscription] {
    var all: [any Subscription] = []
    for index in unsafe 0..<places.count {
      let place = unsafe places[index]
      unsafe close(place)
      if let lent = unsafe takeLent(place) { all.append(lent) }
      guard unsafe place.pointee.hasSubscription else { continue }
      unsafe place.pointee.hasSubscription = false
      unsafe all.append(place.pointee.subscription.move())
    }
    return all
  }

  /// Takes the subscription that is lent in a place that was closed too early, to be cancelled.
  ///
  /// - Returns: The subscription; nil if it is not lent yet, or if it has been taken.
  @usableFromInline
  func takeLent(_ place: Place) -> (any Subscription)? {
    guard unsafe place.pointee.number.load(ordering: .acquiring) == ChildPlace.closedTooEarly,
      let lent = unsafe place.pointee.lent.load(ordering: .acquiring)
    else { return nil }
    let subscription = unsafe lent.pointee
    // After this, the function that lends it may return without taking the lock.
    unsafe place.pointee.number.store(ChildPlace.closed, ordering: .releasing)
    return subscription
  }

  private func close(_ place: Place) {
    var number = unsafe place.pointee.number.load(ordering: .relaxed)
    while number >= 0 {
      let isOpen = number % 2 == 1
      let desired =
        unsafe isOpen && !place.pointee.hasSubscription ? ChildPlace.closedTooEarly : ChildPlace.closed
      let (isDone, actual) = unsafe place.pointee.number.weakCompareExchange(
        expected: number, desired: desired, ordering: .acquiringAndReleasing)
      if isDone { return }
      number = actual
    }
  }
}
