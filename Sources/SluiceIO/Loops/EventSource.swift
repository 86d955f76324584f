import CLinux
import Glibc

/// Something with a file descriptor that an `EpollLoop` watches: a stream, a listener, a connection being opened.
///
/// A base class instead of a protocol, so that the loop's table holds one word per source.
class EventSource {
  let loop: EpollLoop
  /// Closed when negative.
  final var descriptor: Int32
  /// Names this source's entry in the loop's table; nil while the loop doesn't watch it.
  final var registration: Registration?

  init(loop: EpollLoop, descriptor: Int32) {
    self.loop = loop
    self.descriptor = descriptor
  }

  deinit {
    // Not watched: the loop's table would have kept it.
    if descriptor >= 0 { _ = Glibc.close(descriptor) }
  }

  /// The descriptor is ready for `events`. Called on the loop, never after the registration was given up.
  func ready(_ events: EpollEvents) {}

  /// Called at the end of the turn in which `loop.settle(self)` was called.
  func turnSettled() {}

  /// The loop has stopped: release everything. A source that stays registered is watched for a moment longer, so that
  /// what was written to it can be sent.
  func loopStopped() {
    closeDescriptor()
  }

  /// Ends the registration, if any, and closes the descriptor.
  final func closeDescriptor() {
    loop.deregister(self)
    if descriptor >= 0 {
      _ = Glibc.close(descriptor)
      descriptor = -1
    }
  }
}

/// The events of `epoll_ctl` and `epoll_wait`.
struct EpollEvents: OptionSet, Sendable {
  var rawValue: UInt32

  static let readable = Self(rawValue: EPOLLIN.rawValue)
  static let writable = Self(rawValue: EPOLLOUT.rawValue)
  static let failed = Self(rawValue: EPOLLERR.rawValue)
  static let hungUp = Self(rawValue: EPOLLHUP.rawValue)
  static let edgeTriggered = Self(rawValue: EPOLLET.rawValue)
}

/// Names one registration of one loop, in the data that `epoll` hands back with an event: the place in the table, and
/// how often that place has been used. An event that was fetched before its source went away doesn't match any more.
struct Registration: Hashable {
  var rawValue: UInt64

  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  init(place: Int, use: UInt32) {
    rawValue = UInt64(use) << 32 | UInt64(UInt32(place))
  }

  var place: Int { Int(UInt32(truncatingIfNeeded: rawValue)) }
  var use: UInt32 { UInt32(rawValue >> 32) }
}

/// The sources that a loop watches, by registration. Keeps them alive.
struct RegistrationTable {
  private struct Place {
    var source: EventSource?
    var use: UInt32
    var nextFree: Int32
  }

  private var places: [Place] = []
  private var firstFree: Int32 = -1
  private(set) var count = 0

  mutating func insert(_ source: EventSource) -> Registration {
    count += 1
    if firstFree >= 0 {
      let index = Int(firstFree)
      firstFree = places[index].nextFree
      places[index].source = source
      return Registration(place: index, use: places[index].use)
    }
    places.append(Place(source: source, use: 1, nextFree: -1))
    return Registration(place: places.count - 1, use: 1)
  }

  /// Returns the source, for the caller to release: its end may call the loop again.
  mutating func remove(_ registration: Registration) -> EventSource? {
    guard self[registration] != nil else { return nil }
    count -= 1
    let index = registration.place
    let source = places[index].source
    places[index].source = nil
    places[index].use &+= 1
    places[index].nextFree = firstFree
    firstFree = Int32(index)
    return source
  }

  /// The source registered so; nil when it was removed since.
  subscript(registration: Registration) -> EventSource? {
    let index = registration.place
    guard index < places.count, places[index].use == registration.use else { return nil }
    return places[index].source
  }

  var all: [EventSource] { places.compactMap(\.source) }
}
