/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C++ that uses Kiln: runs a model on a picture of noise and prints the surest class.
 */
#include <algorithm>
#include <iostream>
#include <kiln.hpp>
#include <vector>

int
main(int argc, char **argv)
{
    try {
        const kiln::Program program(kiln::Model(argc > 1 ? argv[1] : "digits.onnx"));
        kiln::Session session(program);
        const KilnTensorInfo &input = program.input(0);
        std::vector<float> noise(static_cast<std::size_t>(input.bytes) / sizeof(float));
        for (std::size_t i = 0; i < noise.size(); i++)
            noise[i] = static_cast<float>(i * 7919 % 100) / 100;
        session.bind_input(0, noise);
        session.run();

        const auto scores = session.output<float>(0);
        const auto *best = std::max_element(scores.begin(), scores.end());
        std::cout << scores.info().name << ": " << best - scores.begin() << ", " << *best << "\n";
    } catch (const kiln::Error &error) {
        std::cerr << "digit: " << error.what() << "\n";
        return 1;
    }
    return 0;
}
