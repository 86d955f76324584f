import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CombineIdentifierTests {
  final class Object: CustomCombineIdentifierConvertible {}

  @Test func everyOneIsDifferent() {
    #expect(CombineIdentifier() != CombineIdentifier())
    #expect(Set((0..<100).map { _ in CombineIdentifier() }).count == 100)
  }

  @Test func objectsKeepTheirs() {
    let object = Object()
    #expect(object.combineIdentifier == object.combineIdentifier)
    #expect(object.combineIdentifier == CombineIdentifier(object))
    #expect(object.combineIdentifier.description.hasPrefix("0x"))
  }
}
