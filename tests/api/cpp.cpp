/* SPDX-License-Identifier: Apache-2.0 */
/* kiln.hpp, as a stranger to the tree uses it.
 *   cpp MODEL.onnx FOLDER      FOLDER is there to write to */
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <kiln.hpp>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* What @run throws: its code, and a message. */
static bool
throws(KilnError code, const std::function<void()> &run)
{
    try {
        run();
    } catch (const kiln::Error &error) {
        if (error.code() == code && error.what()[0])
            return true;
        std::fprintf(stderr, "found error %d: %s\n", error.code(), error.what());
    }
    return false;
}

/* Containers that go before a run would be read are no inputs: such a call does not compile. */
template <typename Range, typename = void> struct Binds : std::false_type {
};
template <typename Range>
struct Binds<Range, std::void_t<decltype(std::declval<kiln::Session &>().bind_input(
                        0u, std::declval<Range>()))>> : std::true_type {
};
static_assert(Binds<std::vector<float> &>::value, "a container that stays");
static_assert(Binds<const std::array<float, 3> &>::value, "an array that stays");
static_assert(Binds<kiln::Span<const float>>::value, "a span");
static_assert(Binds<kiln::Item>::value, "an item, which is counted");
static_assert(!Binds<std::vector<float>>::value, "a container that goes");
static_assert(!std::is_copy_constructible<kiln::Session>::value, "a session has one owner");
static_assert(std::is_nothrow_move_constructible<kiln::Program>::value, "moves do not count");

static kiln::Model
from_text(const std::string &text)
{
    return kiln::Model::from_bytes(text.data(), text.size(), "text.kiln");
}

static void
digits(const std::string &path)
{
    kiln::Model model(path);
    EXPECT(model.n_inputs() == 1 && model.n_outputs() == 1);
    EXPECT(std::string(model.input(0).name) == "image" && model.output(0).dtype == KILN_DTYPE_f32);
    EXPECT(std::string(model.metadata().graph_name) == "digits");
    kiln::CompileOptions options;
    kiln::Pipeline pipeline = kiln::Pipeline::parse("dce").add("cse");
    options.pipeline = pipeline.get();
    options.threads = 1;
    const kiln::Program plain(model, options);
    const kiln::Program program(model);
    EXPECT(program.find_input("image") == 0 && program.find_output("probabilities") == 0);
    EXPECT(kiln::dims(program.input(0)).size() == 4 && program.memory().arena > 0);

    std::vector<float> picture(28 * 28);
    std::iota(picture.begin(), picture.end(), 0.0f);
    std::array<float, 10> bound{};
    kiln::Session session(program), other(plain);
    session.bind_input("image", picture);
    session.bind_output(0, bound);
    session.run();
    other.bind_input(0, kiln::Span<const float>(picture.data(), picture.size()));
    other.run();
    const auto scores = session.output<float>(0);
    const auto plain_scores = other.output<float>("probabilities");
    EXPECT(scores.data() == bound.data() && scores.size() == 10);
    EXPECT(scores.dims().size() == 2 && scores.dims()[1] == 10);
    for (std::size_t i = 0; i < scores.size(); i++)
        EXPECT(scores[i] - plain_scores[i] < 1e-5f && plain_scores[i] - scores[i] < 1e-5f);

    kiln::Session clone = session.clone(), moved = std::move(session);
    clone.run();
    EXPECT(clone.output<float>()[3] == moved.output<float>()[3]);
    EXPECT(throws(KILN_ERROR_TYPE, [&] { moved.output<double>(0); }));
    std::vector<double> doubles(28 * 28);
    EXPECT(throws(KILN_ERROR_TYPE, [&] { moved.bind_input(0, doubles); }));
    picture.pop_back();
    EXPECT(throws(KILN_ERROR_SHAPE, [&] { moved.bind_input(0, picture); }));
    EXPECT(throws(KILN_ERROR_USAGE, [&] { moved.bind_input("frame", picture); }));
    EXPECT(throws(KILN_ERROR_USAGE, [&] { program.input(1); }));
    EXPECT(throws(KILN_ERROR_USAGE, [&] { kiln::Session(program).run(); }));
}

/* A copy lives on when its original goes; one that was moved from owns nothing. */
static void
owners(const std::string &path)
{
    kiln::Model first(path), second = first, third = std::move(first);
    EXPECT(second.get() == third.get() && !first.get());
    first = second;
    second = kiln::Model(path);
    EXPECT(first.get() == third.get() && second.get() != third.get());
    kiln_model_unref(third.ref());
    const kiln::Model &self = third;
    third = self;
    EXPECT(third.n_inputs() == 1);
}

static void
items()
{
    const std::vector<float> numbers{ 1, 2, 3 };
    const kiln::Item tensor = kiln::Item::tensor({ 3 }, numbers);
    const kiln::Item sequence = kiln::Item::sequence({ tensor, tensor });
    EXPECT(sequence.size() == 2 && sequence.dtype() == KILN_DTYPE_sequence);
    EXPECT(sequence[1] == tensor && sequence[1].elements<float>()[2] == 3);
    EXPECT(sequence[0].dims().size() == 1 && sequence != kiln::Item::sequence({ tensor }));
    EXPECT(kiln::Item::optional(tensor).size() == 1 && kiln::Item::nothing().size() == 0);
    const std::vector<std::int64_t> keys{ 7, 8, 9 };
    EXPECT(kiln::Item::map(kiln::Item::tensor({ 3 }, keys), tensor).size() == 2);
    EXPECT(throws(KILN_ERROR_SHAPE, [&] { kiln::Item::tensor({ 4 }, numbers); }));
    EXPECT(throws(KILN_ERROR_TYPE, [&] { tensor.elements<int>(); }));
    EXPECT(throws(KILN_ERROR_USAGE, [&] { sequence[2]; }));
    EXPECT(throws(KILN_ERROR_USAGE, [&] { kiln::Item::map(tensor, tensor); }));

    const kiln::Program program(from_text("graph @f(%s: sequence(f32[?])) {\n"
                                          "  %e = sequence_erase(%s) : sequence(f32[?])\n"
                                          "  return %e\n}\n"));
    kiln::Session session(program);
    session.bind_input(0, sequence);
    session.run();
    EXPECT(session.output_item(0) == kiln::Item::sequence({ tensor }));
    session.bind_input(0, kiln::Item::sequence({ tensor, tensor, tensor }));
    session.run();
    EXPECT(session.output_item().size() == 2);
}

static void
shapes(const std::string &folder)
{
    const kiln::Program program(from_text("graph @f(%x: f32[N]) {\n"
                                          "  %y = relu(%x) : f32[N]\n  return %y\n}\n"));
    KilnShape shape = {};
    shape.input = "x";
    shape.rank = 1;
    shape.dims[0] = 3;
    program.prepare({ shape });
    kiln::Session session(program);
    std::vector<float> x{ -1, 2, -3 };
    session.bind_input(0, x, { 3 });
    session.run();
    EXPECT(session.output<float>(0).dims()[0] == 3 && session.output<float>(0)[1] == 2);
    EXPECT(throws(KILN_ERROR_SHAPE, [&] { session.bind_input(0, x, { 4 }); }));

    const std::string path = folder + "/relu.kiln-program";
    program.save(path);
    kiln::Session loaded(kiln::Program::load(path));
    loaded.bind_input(0, x, { 3 });
    loaded.run();
    EXPECT(loaded.output<float>()[1] == 2);
    std::remove(path.c_str());
}

static void
state()
{
    const kiln::Program program(from_text("graph @f(%x: f32[1], %s: f32[1]) {\n"
                                          "  %y = add(%x, %s) : f32[1]\n  return %y\n}\n"));
    kiln::Session session(program);
    std::array<float, 1> one{ 1 }, begin{ 10 };
    session.bind_input(0, one);
    session.bind_input(1, begin);
    session.carry(0, 1);
    session.run();
    session.run();
    EXPECT(session.output<float>()[0] == 12);
    EXPECT(throws(KILN_ERROR_USAGE, [&] { session.truncate(1, 0); }));
    session.reset();
    session.bind_input(1, begin);
    session.run();
    EXPECT(session.output<float>()[0] == 11);
}

static void
refused(const std::string &path)
{
    EXPECT(throws(KILN_ERROR_IO, [] { kiln::Model("no-such-model.onnx"); }));
    EXPECT(throws(KILN_ERROR_PARSE, [] { from_text("graph @"); }));
    EXPECT(throws(KILN_ERROR_PIPELINE, [] { kiln::Pipeline::parse("no-such-pass"); }));
    EXPECT(throws(KILN_ERROR_IO, [] { kiln::Program::load("no-such-program"); }));
    EXPECT(kiln::Pipeline("none").to_string().find("version: 1") != std::string::npos);
    kiln::ModelOptions limits;
    limits.node_limit = 1;
    EXPECT(throws(KILN_ERROR_LIMIT, [&] { kiln::Model(path, limits); }));
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT(kiln::Model::from_bytes(bytes.data(), bytes.size(), "bytes.onnx").n_outputs() == 1);
}

int
main(int argc, char **argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: cpp MODEL.onnx FOLDER\n");
        return 2;
    }
    try {
        digits(argv[1]);
        owners(argv[1]);
        items();
        shapes(argv[2]);
        state();
        refused(argv[1]);
    } catch (const kiln::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return failures != 0;
}
