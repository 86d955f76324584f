import ReactiveCore
import ReactiveTestSupport
import Testing

private class Base: ObservableObject {
  @Published var first = 0
  var plain = "plain"
  let constant = Published(initialValue: 42)
}

private final class Derived: Base {
  @Published var second = "a"
}

private class Unobserved {
  @Published var inherited = 1
}

private final class ObservedChild: Unobserved, ObservableObject {}

private final class Generic<T>: ObservableObject {
  @Published var value: T

  init(_ value: T) {
    self.value = value
  }
}

private final class Manual: ObservableObject {
  var state = 0 {
    willSet { objectWillChange.send() }
  }
}

private final class Custom: ObservableObject {
  let objectWillChange = PassthroughSubject<Int, Never>()
  @Published var state = 0
}

@Suite struct ObservableObjectTests {
  @Test func tellsBeforeAPublishedPropertyChanges() {
    let object = Derived()
    var seen: [String] = []
    let subscription = object.objectWillChange.sink { seen.append("\(object.first) \(object.second)") }
    object.first = 1
    object.second = "b"
    object.first = 2
    object.plain = "unheard"
    #expect(seen == ["0 a", "1 a", "1 b"])
    subscription.cancel()
    object.first = 3
    #expect(seen.count == 3)
  }

  @Test func isTheSameForAsLongAsTheObjectLives() {
    let object = Derived()
    #expect(object.objectWillChange === object.objectWillChange)
    #expect((object as Base).objectWillChange === object.objectWillChange)
    #expect(Base().objectWillChange !== object.objectWillChange)
    let manual = Manual()
    #expect(manual.objectWillChange === manual.objectWillChange)
    #expect(manual.objectWillChange !== Manual().objectWillChange)
  }

  @Test func findsPropertiesOfSuperclassesThatAreNotObservable() {
    let object = ObservedChild()
    var count = 0
    let subscription = object.objectWillChange.sink { count += 1 }
    object.inherited = 2
    #expect(count == 1)
    subscription.cancel()
  }

  @Test func findsPropertiesOfGenericClasses() {
    let object = Generic([1])
    var count = 0
    let subscription = object.objectWillChange.sink { count += 1 }
    object.value.append(2)
    #expect(count == 1)
    #expect(object.value == [1, 2])
    subscription.cancel()
  }

  @Test func objectsWithoutPublishedPropertiesTellByHand() {
    let object = Manual()
    var seen: [Int] = []
    let subscription = object.objectWillChange.sink { seen.append(object.state) }
    object.state = 1
    object.state = 2
    #expect(seen == [0, 1])
    subscription.cancel()
  }

  @Test func objectsThatComeAndGoDoNotInheritPublishers() {
    var heard = 0
    var subscriptions: [AnyCancellable] = []
    for _ in 0..<1000 {
      let object = Manual()
      object.state = 1
      subscriptions.append(object.objectWillChange.sink { heard += 1 })
      object.state = 2
    }
    #expect(heard == 1000)
  }

  @Test func objectsAreNotKeptAlive() {
    weak var manual: Manual?
    weak var derived: Derived?
    do {
      let (first, second) = (Manual(), Derived())
      (manual, derived) = (first, second)
      _ = (first.objectWillChange, second.objectWillChange)
    }
    #expect(manual == nil)
    #expect(derived == nil)
  }

  @Test func anObjectMayBringItsOwnPublisher() {
    let object = Custom()
    var count = 0
    let subscription = object.objectWillChange.sink { _ in count += 1 }
    object.state = 1
    #expect(count == 0)
    subscription.cancel()
  }

  @Test func threadsAgreeOnThePublisher() async {
    for _ in 0..<200 {
      let objects = UncheckedBox((Derived(), Manual()))
      let identities = await withTaskGroup(of: [ObjectIdentifier].self) { group in
        for _ in 0..<4 {
          group.addTask {
            [
              ObjectIdentifier(objects.value.0.objectWillChange),
              ObjectIdentifier(objects.value.1.objectWillChange),
            ]
          }
        }
        return await group.reduce(into: Set<[ObjectIdentifier]>()) { $0.insert($1) }
      }
      #expect(identities.count == 1)
    }
  }
}
