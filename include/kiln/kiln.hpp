/* SPDX-License-Identifier: Apache-2.0 */
/* Kiln for C++17 and later: a thin layer over kiln.h, of this header alone. Link with libkiln.
 *
 *     #include <kiln.hpp>
 *     #include <iostream>
 *     #include <vector>
 *
 *     int
 *     main(int argc, char **argv)
 *     {
 *         try {
 *             kiln::Program program{ kiln::Model{ argc > 1 ? argv[1] : "model.onnx" } };
 *             kiln::Session session{ program };
 *             std::vector<float> picture(1 * 1 * 28 * 28);
 *             session.bind_input(0, picture);
 *             session.run();
 *             std::cout << session.output<float>(0)[0] << "\n";
 *         } catch (const kiln::Error &error) {
 *             std::cerr << error.what() << "\n";
 *             return 1;
 *         }
 *     }
 *
 * Every object owns one of kiln.h, which get() borrows and ref() counts. Models, pipelines,
 * programs and items are cheap to copy; a session can only be moved. An object that was moved from
 * may only be destroyed or assigned to. A function that fails throws kiln::Error. The rules of
 * kiln.h hold for threads, for lives of pointers, and for memory that is bound. */
#ifndef KILN_HPP
#define KILN_HPP

#include "cpp/base.hpp"
#include "cpp/item.hpp"
#include "cpp/model.hpp"
#include "cpp/session.hpp"

#endif
